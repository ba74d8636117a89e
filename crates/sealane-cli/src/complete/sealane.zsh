#compdef sealane
# Completions of sealane for zsh: sealane completions zsh > "${fpath[1]}/_sealane"
_sealane() {
    local -a offers
    local line word
    for line in "${(@f)$("${words[1]}" complete -- "${(@Q)words[2,CURRENT]}" 2> /dev/null)}"; do
        [[ -n "$line" ]] || continue
        word="${line%%$'\t'*}"
        offers+=("${word//:/\\:}:${line#*$'\t'}")
    done
    if (( ${#offers} )); then
        _describe -V sealane offers
    else
        _files
    fi
}
if [[ "${funcstack[1]}" = "_sealane" ]]; then
    _sealane "$@"
else
    compdef _sealane sealane
fi
