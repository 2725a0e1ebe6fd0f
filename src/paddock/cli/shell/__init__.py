"""`paddock shell`: the commands of Apache's `zkCli`, with its texts, for any ZooKeeper.

`shell` runs lines over a `connection`; `commands` is the table that it is handed, and the commands
themselves never import it. `pipe` reads lines of scripts, `terminal` those that are typed.
"""
