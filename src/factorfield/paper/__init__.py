"""The paper's experiments over public names: what to run (`plan`), one run (`run`), records on disk (`store`),
many runs on a cluster (`sweep`), and what the records say (`tables`, `figures`, `claims`, `page`)."""
