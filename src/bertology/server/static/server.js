// Requests to the server of this page. Errors are thrown with a text for the user.

const BUSY = 503; // too many requests at once: the same request may be sent again

async function answer(response, read) {
  if (response.ok) return response[read]();
  const value = await response.json().catch(() => ({ error: "The answer of the server could not be read." }));
  const error = new Error([value.error, value.hint].filter(Boolean).join(" "));
  throw Object.assign(error, { isBusy: response.status === BUSY });
}

async function ask(address, options, read = "json") {
  let response;
  try {
    response = await fetch(address, options);
  } catch (error) {
    if (options.signal?.aborted) throw error; // the page cancelled it: no error
    throw new Error("The command that serves this page does not answer. Was it stopped?");
  }
  return answer(response, read);
}

export function get(address, { signal } = {}) {
  return ask(address, { method: "GET", signal });
}

// `read` says what the answer is: "json", or "arrayBuffer" for attention maps.
export function post(address, value, { signal, read } = {}) {
  const headers = { "Content-Type": "application/json" };
  return ask(address, { method: "POST", headers, body: JSON.stringify(value), signal }, read);
}
