// Which hidden tokens stay hidden when the text changes.

// Tokens are known by their number. It surely stays where a single text only grows; but letters
// that are added to its last word may cut that word anew. `maps` are those of the old text.
export function keptMasks(view, { text, pair }, maps) {
  if (pair !== null || view.pair !== null || !text.startsWith(view.text)) return [];
  const added = text.slice(view.text.length);
  const isNewWord = added === "" || /^\s/u.test(added) || /\s$/u.test(view.text);
  return isNewWord ? view.masked : view.masked.filter((piece) => isBeforeLastWord(piece, maps));
}

function isBeforeLastWord(piece, maps) {
  const last = maps?.words.findLast((word) => word !== null) ?? null;
  const word = maps?.words[maps.pieces.findIndex((pieces) => pieces.includes(piece))] ?? null;
  return last !== null && word !== null && word < last;
}
