"""The command `completion`, which both programs have: a script that completes their words in a
shell."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and files in a shell.

    \b
      bash: eval "$(PROGRAM completion bash)"       in ~/.bashrc
      zsh:  eval "$(PROGRAM completion zsh)"        in ~/.zshrc
      fish: PROGRAM completion fish | source        in ~/.config/fish/config.fish

    PROGRAM is `a2a-proxy` or `a2a-inspect`; each has its own script.
    """
    from a2a_proxy.present.output import print_document

    root = ctx.find_root()
    program = root.info_name or "a2a-proxy"
    found = get_completion_class(shell)
    assert found is not None  # click knows all of them
    variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
    print_document(found(root.command, {}, program, variable).source())
