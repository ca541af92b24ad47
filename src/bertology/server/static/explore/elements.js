// Helpers that make elements. Texts are set as text, never as HTML: users type the tokens.

export const at = (id) => document.getElementById(id);

export function element(name, { text, on = {}, ...attributes } = {}, children = []) {
  const made = document.createElement(name);
  if (text !== undefined) {
    made.textContent = text;
    made.dir = "auto"; // it runs as its own letters do, whatever stands around it
  }
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value);
  }
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  made.append(...children);
  return made;
}

export function percent(share) {
  const digits = share < 0.0995 ? 1 : 0;
  if (share > 0 && share < 0.0005) return "< 0.1 %";
  return `${(100 * share).toFixed(digits)} %`;
}

export function points(difference) {
  const size = (100 * Math.abs(difference)).toFixed(1);
  if (size === "0.0") return "0.0";
  return `${difference < 0 ? "−" : "+"}${size}`;
}

// Layers and heads are numbered from 0, as in figures and in Python; a mean has no number.
export function nameOf({ layer, head }) {
  if (layer === null && head === null) return "Mean of all heads";
  if (head === null) return `Layer ${layer}, mean of its heads`;
  if (layer === null) return `Head ${head}, mean over layers`;
  return `Layer ${layer}, head ${head}`;
}

// How much larger the type is than a browser's usual 16 pixels: the reader's choice, or presenting.
export const typeScale = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

export const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);
