package sites

func onArcher2(r *trial) {
	r.run("1→3→1", func(r *trial) { r.evolve(demand{never: []string{"n6"}, drive: "companion"}) })
}
func onStackHPC(r *trial) {
	r.run("1→3→1", func(r *trial) { r.evolve(demand{}) })
}
func onDeepOps(r *trial) {
	r.run("1→3→1", func(r *trial) { r.evolve(demand{gres: "gpu:8"}) })
}
func onULHPC(r *trial) {
	r.run("1→3→1", func(r *trial) { r.evolve(demand{drive: "companion"}) })
}
func onUGent(r *trial) {
	r.run("1→3→1", func(r *trial) { r.evolve(demand{memory: "800"}) })
}
func onGCP(r *trial) {
	r.run("3→5→1", func(r *trial) { r.evolve(demand{}) })
}
func onSeaWulf(r *trial) {
	r.run("3→4→3", func(r *trial) { r.evolve(demand{}) })
}
