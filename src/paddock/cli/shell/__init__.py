"""`paddock shell`: the commands of Apache's `zkCli`, with its words, for any ZooKeeper.

`line` takes apart what was typed, `options` the flags in it. `catalogue` has the commands, which
are in `reading`, `writing`, `access`, `watching`, `quotas`, `ensemble` and `session`, a function
each; `complaint`, `formats` and `numbers` have the words. A `Shell` runs them, over a `connection`.
What reads the lines is apart: `pipe` for scripts, and `terminal` for people, who get `screen`,
`history`, `completion` with `vocabulary` and `nodes`, and `help` as well.
"""
