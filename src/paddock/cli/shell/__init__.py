"""`paddock shell`: the commands of Apache's `zkCli`, with its words, for any ZooKeeper.

`line` takes apart what was typed, `options` the flags in it. `catalogue` has the commands, which
are in `reading`, `writing`, `access`, `watching`, `quotas` and `ensemble`, a function each. A
`Shell` runs them. What reads the lines is apart: `pipe` for scripts, and `terminal` for people, who
get `screen`, `history`, `completion`, `nodes` and `help` as well.
"""
