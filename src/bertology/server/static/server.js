// Questions to the server that this page came from. Trouble is thrown as text for the reader.

async function answer(response) {
  const value = await response.json().catch(() => ({ error: "The answer was not readable." }));
  if (!response.ok) {
    throw new Error([value.error, value.hint].filter(Boolean).join(" "));
  }
  return value;
}

async function ask(address, options) {
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Error("The command that serves this page does not answer. Was it stopped?");
  }
  return answer(response);
}

export function get(address) {
  return ask(address, { method: "GET" });
}

export function post(address, value) {
  return ask(address, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
  });
}
