#compdef hostler
# Completion of hostler for zsh. In ~/.zshrc, after compinit: eval "$(hostler completion zsh)"
_hostler() {
  local -a lines offered
  local line
  lines=("${(@f)$("${words[1]/#\~\//$HOME/}" complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${lines[@]}"; do
    case "$line" in
      '') ;;
      :files) _files ;;
      :programs) _command_names -e ;;
      *) offered+=("$line") ;;
    esac
  done
  (( ${#offered} )) && _describe -V 'hostler' offered
}
if [ "$funcstack[1]" = "_hostler" ]; then
  _hostler "$@"
elif (( $+functions[compdef] )); then
  compdef _hostler hostler
fi
