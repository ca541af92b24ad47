// From weights to colours. The ramps are straight lines through OKLab (Ottosson 2020), so equal
// steps of a weight look like equal steps. On light pages more is darker, on dark pages lighter.

const LIGHT = [[0.97, 0.006, 250], [0.46, 0.135, 250], [0.27, 0.085, 265]];
const DARK = [[0.25, 0.02, 260], [0.6, 0.13, 240], [0.97, 0.07, 105]];

function oklab([lightness, chroma, hue]) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

function toRgb([l, a, b]) {
  const cones = [
    (l + 0.3963377774 * a + 0.2158037573 * b) ** 3,
    (l - 0.1055613458 * a - 0.0638541728 * b) ** 3,
    (l - 0.0894841775 * a - 1.291485548 * b) ** 3,
  ];
  const linear = [
    4.0767416621 * cones[0] - 3.3077115913 * cones[1] + 0.2309699292 * cones[2],
    -1.2684380046 * cones[0] + 2.6097574011 * cones[1] - 0.3413193965 * cones[2],
    -0.0041960863 * cones[0] - 0.7034186147 * cones[1] + 1.707614701 * cones[2],
  ];
  return linear.map((value) => {
    const clipped = Math.min(1, Math.max(0, value));
    const light = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055;
    return Math.round(255 * light);
  });
}

function makeRamp(ends) {
  const [from, middle, to] = ends.map(oklab);
  const length = (p, q) => Math.hypot(...p.map((value, i) => value - q[i]));
  const turn = length(from, middle) / (length(from, middle) + length(middle, to));
  const between = (p, q, share) => p.map((value, i) => value + (q[i] - value) * share);
  return Array.from({ length: 256 }, (_, i) => {
    const share = i / 255;
    const early = share < turn;
    return toRgb(
      early ? between(from, middle, share / turn) : between(middle, to, (share - turn) / (1 - turn)),
    );
  });
}

class Ramp {
  constructor(ends, lines) {
    this.rgb = makeRamp(ends);
    // One number for each pixel, in the byte order of image data: this makes drawing fast.
    this.pixels = Uint32Array.from(this.rgb, ([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r);
    this.lines = lines;
  }

  css(share) {
    return `rgb(${this.rgb[Math.round(255 * Math.min(1, Math.max(0, share)))].join(" ")})`;
  }
}

export const PRINTED = new Ramp(LIGHT, "#0b5cad");
const NIGHT = new Ramp(DARK, "#8ab8ff");
const scheme = window.matchMedia("(prefers-color-scheme: dark)");
const paper = window.matchMedia("print");

export const currentRamp = () => (scheme.matches && !paper.matches ? NIGHT : PRINTED);

export function onSchemeChange(draw) {
  scheme.addEventListener("change", draw);
  paper.addEventListener("change", draw);
}
