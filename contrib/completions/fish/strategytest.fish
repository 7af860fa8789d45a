complete -c strategytest -s h -l help -d Help
complete -c strategytest -l usage -d Help
complete -c strategytest -s V -l version -d 'The version'
