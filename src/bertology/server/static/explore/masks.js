// Which masked tokens stay hidden when the text changes.

// Masked tokens are kept by their number. The numbers stay the same if there is one text and
// something is added at its end; only its last word may be split in another way. `maps` are those
// of the old text.
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
