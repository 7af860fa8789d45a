# fish completion for evosrun: its own options, srun's that are used most, then a command

complete -c evosrun -xa '(__fish_complete_subcommand)'
complete -c evosrun -l follow -xa 'steps script' -d 'On every node, as the job changes its size'
complete -c evosrun -l cores -x -d 'Share of the cores of each node'
complete -c evosrun -l accept -xa 'all shrink none' -d 'Offers and demands that are answered'
complete -c evosrun -l drain -x -d 'Run on each node that leaves'
complete -c evosrun -l drain-signal -xa 'HUP INT QUIT TERM USR1 USR2' -d 'That instances on leaving nodes get'
complete -c evosrun -l drain-time -x -d 'For draining'
complete -c evosrun -l on-nodes -x -d 'Run here when the nodes have changed'
complete -c evosrun -l restart -xa 'never on-failure always' -d 'An instance that has ended'
complete -c evosrun -l restart-limit -x -d 'Restarts in a row'
complete -c evosrun -l tasks -r -d 'A bag of tasks: lines of a file, or numbers'
complete -c evosrun -l bag -xa '(__fish_complete_directories)' -d 'Folder of the bag'
complete -c evosrun -l campaign -d 'The folder is that of a campaign'
complete -c evosrun -l retries -x -d 'Of a task that fails'
complete -c evosrun -l checkpoint -xa 'none demand periodic: dmtcp' -d 'Of tasks'
complete -c evosrun -l checkpoint-signal -xa 'HUP INT QUIT TERM USR1 USR2' -d 'That asks a task for a checkpoint'
complete -c evosrun -l checkpoint-cmd -x -d 'That makes a checkpoint'
complete -c evosrun -l restart-cmd -x -d 'That goes on from a checkpoint'
complete -c evosrun -l task-time -x -d 'That a task takes'
complete -c evosrun -l jobid -x -d 'The evolving job'
complete -c evosrun -s h -l help -d Help
complete -c evosrun -l usage -d Help
complete -c evosrun -s V -l version -d 'The version'
complete -c evosrun -s N -l nodes -x -d Nodes
complete -c evosrun -s n -l ntasks -x -d Tasks
complete -c evosrun -l ntasks-per-node -x -d 'Tasks on each node'
complete -c evosrun -l cpu-freq -x -a 'low medium high highm1' -d 'CPU frequency, a word or kHz'
complete -c evosrun -s c -l cpus-per-task -x -d 'CPUs of a task'
complete -c evosrun -l gpus-per-task -x -d 'GPUs of a task'
complete -c evosrun -l mem -x -d 'Memory on each node'
complete -c evosrun -s w -l nodelist -x -d 'On these nodes'
complete -c evosrun -s x -l exclude -x -d 'Not on these nodes'
complete -c evosrun -s o -l output -r -d Output
complete -c evosrun -s e -l error -r -d Errors
complete -c evosrun -s D -l chdir -xa '(__fish_complete_directories)' -d Folder
complete -c evosrun -l export -x -d Environment
complete -c evosrun -s l -l label -d 'Number the lines'
complete -c evosrun -s K -l kill-on-bad-exit -d 'End all when one fails'
complete -c evosrun -l mpi -x -d 'Kind of MPI'
complete -c evosrun -l cpu-bind -x -d Binding
complete -c evosrun -l overlap -d 'Share with other steps'
complete -c evosrun -l exact -d 'No more than asked for'
complete -c evosrun -s u -l unbuffered -d 'Unbuffered output'
complete -c evosrun -s t -l time -x -d Limit
