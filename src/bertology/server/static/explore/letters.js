// Which way texts run, and which letters this computer can show.

const RIGHT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu;
const OTHER = /\p{L}/gu;
const count = (text, kind) => text.match(kind)?.length ?? 0;

// Whether most letters are of scripts that are written from right to left. Names of special tokens
// are not letters of the text.
export function runsLeft(tokens) {
  const text = tokens.filter((token) => !/^[[<].*[\]>]$/.test(token)).join("");
  return 2 * count(text, RIGHT) > count(text, OTHER);
}

// A word within a sentence of ours: the marks keep what stands beside it in its place.
export const apart = (word) => (count(word, RIGHT) ? `\u2068${word}\u2069` : word);

// A letter without a font looks like one that nobody has defined.
const UNDEFINED = "\u0378";
const [SIDE, SEEN] = [24, new Map()];
let pen = null;

function pictureOf(letter) {
  pen ??= new OffscreenCanvas(2 * SIDE, SIDE).getContext("2d", { willReadFrequently: true });
  pen.clearRect(0, 0, 2 * SIDE, SIDE);
  pen.font = `${0.7 * SIDE}px system-ui, sans-serif`;
  pen.fillText(letter, 2, 0.8 * SIDE);
  return pen.getImageData(0, 0, 2 * SIDE, SIDE).data.join();
}

function isSeen(letter) {
  if (letter < "\u0250") return true; // Latin: no reader is without
  if (!SEEN.has(letter)) SEEN.set(letter, pictureOf(letter) !== pictureOf(UNDEFINED));
  return SEEN.get(letter);
}

const numberOf = (letter) => `U+${letter.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// The text with numbers in place of letters that would be boxes: U+65E5·U+672C.
export function legible(text) {
  const letters = [...text];
  const between = (i) => (i && !isSeen(letters[i - 1]) ? "·" : "");
  return letters.map((c, i) => (isSeen(c) ? c : between(i) + numberOf(c))).join("");
}

export function adviceFor(tokens) {
  const letters = [...new Set(tokens.join(""))].filter((letter) => !isSeen(letter));
  if (!letters.length) return "";
  const isEast = (c) => /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u30ff\uff00-\uffef]/u.test(c);
  const fonts = [
    letters.some(isEast) && "Noto Sans CJK (fonts-noto-cjk)",
    !letters.every(isEast) && "Noto Sans (fonts-noto-core)",
  ].filter(Boolean);
  return (
    "This computer has no font for some of the letters: their numbers in Unicode stand in their place, such as " +
    `${numberOf(letters[0])}. To see them, install ${fonts.join(" and ")}.`
  );
}
