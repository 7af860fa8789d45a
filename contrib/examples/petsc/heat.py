import glob, os, sys
import petsc4py
from petsc4py import PETSc

name, iterations, n, dt = sys.argv[1], int(sys.argv[2]), 40, 1e-3
grid = PETSc.DMDA().create([n, n], stencil_width=1, comm=PETSc.COMM_WORLD)  # shared out over the ranks that there are
u, A = grid.createGlobalVec(), grid.createMatrix()
(x0, x1), (y0, y1) = grid.getRanges()
row, col, h2 = PETSc.Mat.Stencil(), PETSc.Mat.Stencil(), (n + 1) ** -2
for j in range(y0, y1):
    for i in range(x0, x1):
        row.index = (i, j)
        for di, dj in (0, 0), (1, 0), (-1, 0), (0, 1), (0, -1):  # an implicit step: u - dt Laplace(u)
            if 0 <= i + di < n and 0 <= j + dj < n:
                col.index = (i + di, j + dj)
                A.setValueStencil(row, col, -dt / h2 if di or dj else 1 + 4 * dt / h2)
        grid.getVecArray(u)[i, j] = 1.0 if i < n // 2 and j < n // 3 else 0.0
A.assemble()
checkpoints = sorted(glob.glob(f"{name}.*[0-9]"))  # the name's end is how many iterations it has
if checkpoints:
    u.load(PETSc.Viewer().createBinary(checkpoints[-1], "r"))
done = int(checkpoints[-1].rsplit(".", 1)[1]) if checkpoints else 0
solver, b = PETSc.KSP().create(), u.duplicate()
solver.setOperators(A)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-14)
for _ in range(iterations):
    u.copy(b)
    solver.solve(b, u)
viewer = PETSc.Viewer().createBinary(f"{name}.new", "w")
viewer(u)  # in the grid's own order, not the ranks'
viewer.destroy()
norm = u.norm()
if PETSc.COMM_WORLD.rank == 0:
    os.rename(f"{name}.new", f"{name}.{done + iterations:09d}")  # all of it, or nothing
    print(f"{PETSc.COMM_WORLD.size} ranks, iterations {done} to {done + iterations}, norm {norm:.12f}", flush=True)
