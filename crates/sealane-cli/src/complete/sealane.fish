# Completions of sealane for fish: sealane completions fish > ~/.config/fish/completions/sealane.fish
function __sealane_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l offers ($words[1] complete -- $words[2..-1] 2> /dev/null)
    if test (count $offers) -gt 0
        # What is offered may begin with a dash.
        string join -- \n $offers
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c sealane -f -a '(__sealane_complete)'
