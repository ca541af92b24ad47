// In a page that is one file there is no server. The answers were kept in the page when it was made,
// and this module, in the place of server.js, gives them.

let opened = null; // a promise: the answers are unpacked once, when the first one is wanted

async function open() {
  const packed = Uint8Array.from(atob(document.getElementById("kept").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const told = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const mapsAt = ([from, to]) => buffer.slice(4 + length + from, 4 + length + to);
  return { told, mapsAt };
}

export async function get(address) {
  opened ??= open();
  const { told } = await opened;
  if (address === "/api/model") return told.model;
  throw new Error("This page is a copy without the model.");
}

export async function post(address, { view, query }) {
  opened ??= open();
  const { told, mapsAt } = await opened;
  if (address === "/api/maps") return mapsAt(told.maps[view.level]);
  if (address === "/api/predict") return told.predictions;
  const found = address === "/api/search" && told.searches[`${query.kind} ${query.name}`];
  if (!found) throw new Error("This page is a copy without the model.");
  return found;
}
