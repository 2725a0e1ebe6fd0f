"""The subcommands of `paddock`, one module each; `main` names them and imports one of them."""
