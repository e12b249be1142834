# Completion of hostler for fish. In ~/.config/fish/config.fish: hostler completion fish | source
function __hostler_complete
    set -l before (commandline -opc)
    set -l last (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $before[1])
    for line in ($program complete fish $before[2..-1] "$last" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$last"
            case :programs
                __fish_complete_command
            case '*'
                echo $line
        end
    end
end
complete -c hostler -f -k -a '(__hostler_complete)'
