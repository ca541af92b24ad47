// The table of claims, filtered by verdict, study, paper and words.

function startClaims() {
  const form = at("claims-filters");
  if (!form) return;
  const rows = [...document.querySelectorAll("#claims-table tbody tr")];
  const narrow = () => {
    const [verdict, study, paper] = ["verdict", "study", "paper"].map((name) => at(`claims-${name}`).value);
    const words = at("claims-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      const fits = (!verdict || row.dataset.verdict === verdict
        || (verdict === "judged" && !["not run", "not judged"].includes(row.dataset.verdict)))
        && (!study || row.dataset.study === study)
        && (!paper || row.dataset.paper === paper)
        && words.every((word) => text.includes(word));
      row.hidden = !fits;
      count += fits;
    }
    at("claims-count").textContent = `${count} of ${rows.length} claims`;
  };
  form.addEventListener("input", narrow);
  form.addEventListener("submit", (event) => event.preventDefault());
  narrow();
}

// If a link leads to a claim that a filter hides, the filters are removed.
function showClaim(row) {
  if (!row.hidden) return;
  at("claims-filters").reset();
  at("claims-verdict").value = "";
  at("claims-filters").dispatchEvent(new Event("input"));
}
