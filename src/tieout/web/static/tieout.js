// What a page cannot do without a script: look like the Airflow around it, follow a link into it, and ask its API.
"use strict";

// Airflow lets its users choose light or dark, whatever their system says.
function lookLikeAirflow() {
  if (window.parent === window) return;
  try {
    const around = window.parent.document.documentElement;
    const look = () => { document.documentElement.style.colorScheme = around.style.colorScheme; };
    new MutationObserver(look).observe(around, { attributeFilter: ["style"] });
    look();
  } catch {
    // The frame's parent is not Airflow: the system decides.
  }
}
lookLikeAirflow();

// Inside Airflow the page is a frame that may not navigate its parent. The parent's router listens to its history, though.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-airflow]");
  const isPlain = event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (!link || !isPlain || window.parent === window) return;
  try {
    window.parent.history.pushState({}, "", link.href);
    window.parent.dispatchEvent(new PopStateEvent("popstate", { state: {} }));
    event.preventDefault();
  } catch {
    // The frame's parent is not Airflow: the link is followed in the frame.
  }
});

async function ask(method, address, body) {
  const answer = await fetch(address, {
    method,
    credentials: "same-origin",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: body && JSON.stringify(body),
  });
  const told = await answer.json().catch(() => ({}));
  if (answer.ok) return told;
  const detail = typeof told.detail === "string" ? told.detail : JSON.stringify(told.detail ?? "");
  throw new Error(`Airflow answered ${answer.status}: ${detail}`);
}

async function refusePaused(api, dag) {
  const found = await ask("GET", `${api}/dags/${encodeURIComponent(dag)}`);
  if (found.is_paused) throw new Error(`The DAG ${dag} is paused: unpause it first, or the run would wait without a word.`);
}

// Where something lies in the Airflow that serves these pages.
function airflow(api, ...parts) {
  return api.replace(/\/api\/v2$/, "") + parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

// Each returns what to say, and where it can be watched.
const asks = {
  // A window of the schedule is a backfill of one run; any other is a manual run with the window as its parameters.
  async judgeAgain({ api, dag, start, end }) {
    await refusePaused(api, dag);
    const backfill = {
      dag_id: dag, from_date: start, to_date: start, max_active_runs: 1, reprocess_behavior: "completed",
      run_backwards: false, dag_run_conf: {},
    };
    const planned = await ask("POST", `${api}/backfills/dry_run`, backfill);
    if (planned.total_entries > 0) {
      const made = await ask("POST", `${api}/backfills`, backfill);
      return [`Backfill ${made.id} judges this window again.`, airflow(api, "dags", dag, "backfills")];
    }
    const run = { logical_date: null, conf: { window_start: start, window_end: end } };
    const made = await ask("POST", `${api}/dags/${encodeURIComponent(dag)}/dagRuns`, run);
    return [`Run ${made.dag_run_id} judges this window again.`, airflow(api, "dags", dag, "runs", made.dag_run_id)];
  },

  // Only a plan: a person approves or rejects it in Airflow before anything is done.
  async planReplay({ api, run, incident }) {
    await refusePaused(api, "tieout_replay");
    const conf = { run_id: run, incident_id: incident || null };
    const made = await ask("POST", `${api}/dags/tieout_replay/dagRuns`, { logical_date: null, conf });
    return [
      `Run ${made.dag_run_id} of tieout_replay plans it; the plan then waits for approval under Required Actions.`,
      airflow(api, "dags", "tieout_replay", "runs", made.dag_run_id),
    ];
  },
};

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-ask]");
  if (!form) return;
  event.preventDefault();
  const said = form.querySelector("output");
  said.textContent = "Asking Airflow …";
  try {
    const [told, address] = await asks[form.dataset.ask](form.dataset);
    const link = document.createElement("a");
    link.href = address;
    link.dataset.airflow = "";
    link.textContent = "See it in Airflow";
    said.replaceChildren(`${told} `, link);
  } catch (error) {
    said.textContent = error.message;
  }
});
