"""Lists what the policy engine promises; in the order of the ids."""

from tests.ledger.entry import Requirement

ENGINE: dict[str, Requirement] = {
    "breaker:degrades-at-once": Requirement(
        "Calls to a tool that is cut off are answered at once by what it declares in its place.",
        "issue 3",
    ),
    "breaker:opens-and-heals": Requirement(
        "Calls to a tool that hangs are refused at once, long before the first of them ends; when "
        "it is well again, a few probes find out, never more than three at once.",
        "issue 3",
    ),
    "breaker:others-go-on": Requirement(
        "While one tool is cut off, no call to another is refused.",
        "issue 3",
    ),
    "breaker:short-deadlines-say-nothing": Requirement(
        "Calls that were given less time than a healthy callee needs leave its breaker closed.",
        "issue 3",
    ),
    "bulkhead:no-permit-lost": Requirement(
        "Every permit comes back, however the call that holds it ends.",
        "issue 3",
    ),
    "check:call-graph": Requirement(
        "`sixhop check --k8s` finds every edge of the call graph that the policies of the mesh or "
        "of the network refuse or no Service and no proxy knows, and every call they let through "
        "that is none.",
        "issue 6",
    ),
    "check:kustomize": Requirement(
        "`sixhop check --k8s` finds the patches, images and replacements of a kustomization that "
        "change nothing.",
        "issue 6",
    ),
    "check:manifests": Requirement(
        "`sixhop check --k8s` finds what in Kubernetes and Istio manifests contradicts the "
        "configuration that they run, and names object, numbers and a fix.",
        "issue 3",
    ),
    "check:observed": Requirement(
        "`sixhop check --observed` compares declared timeouts with the p99 that running hops "
        "measure, and proposes better ones that can hold; of a few calls it concludes nothing.",
        "issue 3",
    ),
    "check:refuses-contradictions": Requirement(
        "Nothing starts with limits that contradict each other on any path; every contradiction is "
        "told with its path, its numbers and a fix.",
        "design 3",
    ),
    "cli:health-watch": Requirement(
        "`sixhop health --watch` shows every change of a hop as it happens, and ends with 0 on "
        "Ctrl-C.",
        "issue 3",
    ),
    "cli:shed": Requirement(
        "`sixhop shed` closes the gateway's door for as long as it says and `--end` opens it, for "
        "those who have the key.",
        "issue 3",
    ),
    "config:every-setting-explained": Requirement(
        "Every setting says what it means, in which unit and why its default is what it is; "
        "`sixhop check --print-config` prints them all, without keys.",
        "issue 3",
    ),
    "config:no-variable-is-ignored": Requirement(
        "A variable that begins with SIXHOP_ and means nothing is refused with the nearest that "
        "does; single underscores are no separator.",
        "issue 3",
    ),
    "config:wrong-values-are-told-in-full": Requirement(
        "A wrong value is refused with its key, its variable, what it is and what to write.",
        "issue 3",
    ),
    "errors:hurry-blames-nobody": Requirement(
        "Work that outran less time than it takes as a rule is answered as a deadline that was too "
        "short: callers in a hurry have no healthy pod ejected.",
        "issue 6",
    ),
    "fallback:bounded": Requirement(
        "The answers that are kept to be given again stay within bounds of number, weight and age.",
        "issue 3",
    ),
    "fallback:default": Requirement(
        "A tool that fails gives the default that it declares, and the answer says so.",
        "issue 3",
    ),
    "fallback:earlier-answer": Requirement(
        "A tool that fails gives its earlier answer to the same question, no older than it "
        "declares, and the answer says so, with its age and the reason.",
        "issue 3",
    ),
    "fallback:left-out": Requirement(
        "An optional step whose tool fails is left out where the tool declares that it may be, "
        "and the answer names what is missing.",
        "issue 3",
    ),
    "fallback:open-breaker-is-not-offered": Requirement(
        "A tool whose breaker is open is not offered to agents; they leave it out before they "
        "wait.",
        "issue 3",
    ),
    "fallback:original-error": Requirement(
        "When nothing fits, the error that the client hears is the one of the tool.",
        "issue 3",
    ),
    "fallback:search-is-missed": Requirement(
        "Research that cannot search the documents says so, in place of an answer.",
        "issue 3",
    ),
    "fallback:stale-report": Requirement(
        "A report whose tools are away is made of earlier numbers, says how old they are, and "
        "names what is missing.",
        "issue 3",
    ),
    "fallback:without-the-engine": Requirement(
        "Without the engine no earlier answer and no default is given; what an agent can do "
        "without it does without, as before.",
        "issue 3",
    ),
    "fitness:held-loop-is-told": Requirement(
        "A process whose event loop is held up says so in its log and its snapshot: for how long, "
        "and by which call at which line of code, when that is known.",
        "issue 3",
    ),
    "fitness:thawed-is-not-lagging": Requirement(
        "A process that was stopped for a while, or whose machine was, knows it and stays ready.",
        "issue 3",
    ),
    "fitness:wants-no-calls": Requirement(
        "A process whose streams have failed three times in a row by its own fault, or whose event "
        "loop lags, wants no calls and says so to whoever asks; it lives, and comes back by "
        "itself.",
        "design 5",
    ),
    "health:full-snapshot": Requirement(
        "A process tells, in one snapshot, what it takes, what it could still take, and what each "
        "of its policies does; tenants are counted there and never named.",
        "design 6",
    ),
    "health:watch": Requirement(
        "Whoever watches a process has its state at once and after every change; a watch needs no "
        "deadline, is no call in flight, and ends when the process drains.",
        "design 6",
    ),
    "health:watch-is-bounded": Requirement(
        "A watcher that does not read costs a process one state and ends by itself, and only so "
        "many may watch.",
        "issue 3",
    ),
    "http-pools:a-group-of-its-own": Requirement(
        "Each group of dependencies has HTTP connections of its own, as many as it has permits; "
        "one that hangs leaves the others theirs.",
        "issue 3",
    ),
    "http-pools:nothing-is-left": Requirement(
        "HTTP connections end with the call that is given up, and with the process that holds "
        "them.",
        "issue 3",
    ),
    "http-pools:nothing-is-sent-twice": Requirement(
        "No request over HTTP is sent a second time by itself, also over a connection that proves "
        "closed.",
        "issue 3",
    ),
    "loop:ends-the-run": Requirement(
        "An agent that takes the same action with the same arguments twice is in a loop: it is "
        "not done again, and the run ends with LOOP_DETECTED; attempts of one action count once.",
        "design 8",
    ),
    "overload:goodput": Requirement(
        "A hop that is sent three times what it can serve still does 85 % of what it can.",
        "issue 3",
    ),
    "overload:highest-level-served": Requirement(
        "Of the calls of the highest criticality 99 % are served in time at three times the load; "
        "what is refused is told when to come back.",
        "issue 3",
    ),
    "overload:limit-holds": Requirement(
        "However many calls are refused, cut or cancelled, never more are served at once than the "
        "limit says, and never fewer because a place was lost.",
        "issue 3",
    ),
    "overload:tenant-alone-pays": Requirement(
        "Beside a tenant at ten times its share no call of the others within theirs is refused.",
        "issue 3",
    ),
    "plan:reserve-is-kept": Requirement(
        "An optional step, and a generation, end before they use up the time of the steps after "
        "them, and the answer says so.",
        "design 3",
    ),
    "profile:naive": Requirement(
        "The naive profile runs the same code with every control off: static timeouts, one pool, "
        "three blind retries; every hop says so when it starts.",
        "issue 3",
    ),
    "reload:bad-file-changes-nothing": Requirement(
        "A bad file, or one that changes what is fixed while a hop runs, changes nothing at all; "
        "the log names the setting, and the hop goes on.",
        "issue 3",
    ),
    "reload:drops-no-call": Requirement(
        "SIGHUP has a hop follow its changed file: calls in flight are answered as they would have "
        "been, and what the policies have learned stays.",
        "issue 3",
    ),
    "reload:up-passes-it-on": Requirement(
        "SIGHUP to `sixhop up` reaches all of its hops, and ends none; it says of each whether it "
        "took the file, refused it and why, or gave no answer.",
        "issue 3",
    ),
    "retry:budget": Requirement(
        "A callee that always fails is sent at most a fifth more attempts than there are calls.",
        "issue 3",
    ),
    "retry:none-after-the-deadline": Requirement(
        "Nothing is repeated that could not be answered in time, and nothing after the deadline.",
        "issue 3",
    ),
    "shed:by-order": Requirement(
        "While an operator has closed the gateway's door, calls up to the level of the order fail "
        "at once with LOAD_SHED and say when to come back; the order ends by itself, or by its "
        "withdrawal.",
        "issue 3",
    ),
    "shed:only-by-operators": Requirement(
        "Only who has the operator's key may close the door; without any key only a gateway that "
        "listens on a loopback address and asks nobody for keys takes orders, and none that a "
        "proxy has passed on; every refusal says what to set.",
        "issue 3",
    ),
}
