# Makes md.tpr: a box of 348 molecules of water, as far down in energy as it goes by itself, at 300 K.
set -e
printf '#include "oplsaa.ff/%s.itp"\n' forcefield spc >water.top
printf '[ system ]\nwater\n[ molecules ]\n' >>water.top
gmx -quiet -nobackup solvate -cs spc216.gro -box 2.2 2.2 2.2 -p water.top -o water.gro
printf 'define = -DFLEXIBLE\nintegrator = steep\nnsteps = 300\nrcoulomb = 0.9\nrvdw = 0.9\n' >least.mdp
gmx -quiet -nobackup grompp -f least.mdp -c water.gro -p water.top -o least.tpr -po full.mdp
gmx -quiet -nobackup mdrun -s least.tpr -deffnm least -ntmpi 1 -ntomp 1
gmx -quiet -nobackup grompp -f md.mdp -c least.gro -p water.top -o md.tpr -po full.mdp
