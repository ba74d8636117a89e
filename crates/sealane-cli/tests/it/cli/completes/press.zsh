# Types $1 in a zsh on a terminal, presses the tab key, and prints the line as it stands then.
zmodload zsh/zpty zsh/zselect || exit 1
shown=$HOME/shown
rm -f "$shown"
zpty sitting zsh -f -i
zpty -w sitting "PS1= PS2= RPS1=; unsetopt zle_bracketed_paste; zstyle ':completion:*' menu no
autoload -Uz compinit && compinit -u -D && source <(sealane completions zsh)
show() { print -r -- \"\$BUFFER\" > ${(q)shown}.part; mv ${(q)shown}.part ${(q)shown} }
zle -N show; bindkey '^X' show; bindkey '^I' complete-word; print rea''dy"
# What it prints has to be read, or it stops.
until zpty -r sitting line '*ready*'; do :; done
zpty -w -n sitting "$1"$'\t\x18'
for (( turn = 0; turn < 6000; turn++ )); do
    [[ -e $shown ]] && break
    zpty -rt sitting line
    zselect -t 1
done
cat "$shown"
code=$?
zpty -d sitting
exit $code
