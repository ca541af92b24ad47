// The predictions of the model before and after something is switched off, side by side.

import { at, element, percent, points } from "./elements.js";
import { legible } from "./letters.js";

const SHOWN = 8; // rows for each masked token

// Predictions by a key. Two tokens may look the same, so the key of a token is its id.
const keyed = (answers) =>
  answers && new Map(answers.map((x) => [x.id ?? x.token ?? x.label, { name: x.token ?? x.label, share: x.probability }]));

// One row for each prediction before or after; the largest change comes first.
function rowsOf(before, after) {
  const keys = [...new Set([...before.keys(), ...(after?.keys() ?? [])])];
  const least = (answers) => Math.min(1, ...[...answers.values()].map(({ share }) => share));
  const rows = keys.map((key) => {
    const { name } = before.get(key) ?? after.get(key);
    const [was, is] = [before.get(key)?.share, after?.get(key)?.share];
    const known = was !== undefined && (!after || is !== undefined);
    // A prediction that is not in a list is less probable than the last one there.
    const change = after ? (is ?? least(after)) - (was ?? least(before)) : 0;
    return { name, was, is, known, change };
  });
  const size = (row) => (after ? Math.abs(row.change) : row.was);
  return rows.sort((a, b) => size(b) - size(a)).slice(0, SHOWN);
}

function bar(share, kind) {
  const made = element("span", { class: `bar ${kind}` });
  made.style.width = `${Math.max(0.5, 100 * (share ?? 0))}%`; // the smallest bars stay visible too
  return element("span", { class: "track" }, [made]); // the track is as long as 100 %
}

function tableOf(caption, heading, before, after) {
  const kind = heading === "Class" ? "classes" : "";
  const head = element("tr", {}, [
    element("th", { scope: "col", text: heading }),
    element("td", { class: "bars" }),
    element("th", { scope: "col", class: after ? "before" : "", text: after ? "Before" : "Probability" }),
    ...(after
      ? [
          element("th", { scope: "col", class: "after", text: "After" }),
          element("th", { scope: "col", text: "Change", title: "percentage points" }),
        ]
      : []),
  ]);
  const share = (value) => (value === undefined ? "less" : percent(value));
  const body = rowsOf(before, after).map(({ name, was, is, known, change }) =>
    element("tr", {}, [
      element("th", { scope: "row", text: legible(name), title: name }),
      element("td", { class: "bars" }, [bar(was, "before"), ...(after ? [bar(is, "after")] : [])]),
      element("td", { text: share(was) }),
      ...(after
        ? [
            element("td", { text: share(is) }),
            element("td", {
              class: change < 0 ? "less" : change > 0 ? "more" : "",
              text: `${known ? "" : "about "}${points(change)}`,
            }),
          ]
        : []),
    ]),
  );
  return element("table", { class: after ? `${kind} both` : kind }, [
    element("caption", {}, caption),
    element("thead", {}, [head]),
    element("tbody", {}, body),
  ]);
}

function valueLine(before, after) {
  const both = after === undefined ? before.toFixed(3) : `${before.toFixed(3)} → ${after.toFixed(3)}`;
  return element("p", { class: "value", text: `The model’s value: ${both}` });
}

// The gold label, and whether the model agrees, also after something was switched off.
function showGold(gold, before, after) {
  at("gold").hidden = !gold;
  if (!gold) return;
  const top = ({ classes }) => classes.reduce((a, b) => (b.probability > a.probability ? b : a)).label;
  const verdict = (answers, when) => {
    const isRight = top(answers) === gold.class;
    const said = isRight ? "right" : "wrong";
    return [`${when} model says ${top(answers)}: `, element("b", { class: said, text: said }), ". "];
  };
  const known = gold.class !== null && before.classes;
  at("gold").replaceChildren(
    "Gold label: ",
    element("b", { text: gold.label }),
    ". ",
    ...(known ? verdict(before, after ? "Before, the" : "The") : []),
    ...(known && after ? verdict(after, "After, the") : []),
  );
}

export function showPredictions({ before, after, gold = null }, { originals, asksNext }) {
  showGold(gold, before, after);
  const tokens = before.masked.map(({ position, original }) => original ?? originals.get(position) ?? "");
  const parts = before.masked.map(({ position, predictions }, i) => {
    const changed = after?.masked.find((x) => x.position === position)?.predictions;
    const isAlone = tokens.filter((token) => token === tokens[i]).length === 1;
    const which = isAlone ? "" : ` (token ${position})`;
    const caption = ["Instead of ", element("b", { text: legible(tokens[i]) }), which];
    return tableOf(caption, "Word", keyed(predictions), keyed(changed));
  });
  if (before.classes) {
    const caption = [asksNext ? "Does the second text follow the first?" : "What the classifier predicts for the text"];
    parts.unshift(
      tableOf(caption, "Class", keyed(before.classes), keyed(after?.classes)),
    );
  }
  if (before.value !== null && before.value !== undefined) {
    parts.unshift(valueLine(before.value, after?.value ?? undefined));
  }
  at("predictions").replaceChildren(...parts);
  at("no-predictions").hidden = parts.length > 0;
  at("change-note").hidden = !after || parts.length === 0;
}

export function clearPredictions() {
  at("gold").hidden = true;
  at("predictions").replaceChildren();
  at("no-predictions").hidden = false;
  at("change-note").hidden = true;
}

// The largest change in one sentence, for screen readers.
export function describeChange({ before, after }) {
  const first = before.masked[0];
  const list = first
    ? [keyed(first.predictions), keyed(after?.masked[0]?.predictions)]
    : [keyed(before.classes), keyed(after?.classes)];
  if (!list[0] || !list[1]) return "";
  const [row] = rowsOf(...list);
  const share = (value) => (value === undefined ? "less" : percent(value));
  return row ? `${row.name}: ${share(row.was)} before, ${share(row.is)} after.` : "";
}
