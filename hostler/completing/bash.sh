# Completion of hostler for bash. In ~/.bashrc: eval "$(hostler completion bash)"
_hostler() {
  local line word cur="${COMP_WORDS[COMP_CWORD]}"
  [[ $cur == [=:] ]] && cur=""
  COMPREPLY=()
  while IFS= read -r line; do
    case "$line" in
      :files)
        compopt -o filenames 2>/dev/null
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
        ;;
      :programs)
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -c -- "$cur")
        ;;
      *)
        [[ $line == *= ]] && compopt -o nospace 2>/dev/null
        COMPREPLY+=("$line")
        ;;
    esac
  done < <("${1/#\~\//$HOME/}" complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o nosort -F _hostler hostler 2>/dev/null || complete -F _hostler hostler
