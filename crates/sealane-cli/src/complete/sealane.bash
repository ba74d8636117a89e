# Completions of sealane for bash: source <(sealane completions bash)
_sealane() {
    local words line quoted
    # Bash parts words at = and : too; sealane reads them as they were typed.
    local typed="${COMP_LINE:0:COMP_POINT}"
    # Without -r a blank behind a backslash parts no words.
    read -a words <<< "$typed"
    [[ "$typed" == *[[:space:]] ]] && words+=("")
    local last="${words[${#words[@]}-1]}" cur
    read cur <<< "${COMP_WORDS[COMP_CWORD]}"
    # What stands before the part that bash replaces.
    local before="${last%"$cur"}"
    [[ "$cur" == "=" || "$cur" == ":" ]] && before="$last"
    COMPREPLY=()
    while IFS= read -r line; do
        line="${line%%$'\t'*}"
        # A topic may have blanks, quotes and whatever else a shell obeys.
        printf -v quoted '%q' "${line#"$before"}"
        COMPREPLY+=("$quoted")
    done < <("${words[0]}" complete -- "${words[@]:1}" 2> /dev/null)
}
complete -o bashdefault -o default -F _sealane sealane
