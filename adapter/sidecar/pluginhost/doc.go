// Package pluginhost runs strategies for the sidecar: those built in, and those
// that are plugin processes. It finds plugins in a folder, starts them on demand
// as an unprivileged user with limits on memory and time, verifies whatever they
// answer, and plans with the built-in default in the same cycle where a plugin
// fails.
//
//	discover.go  what is in the folder
//	keeper.go    the process around each plugin: limits, and no process left behind
//	tree.go      a process's descendants
//	runner.go    the keeper as go-plugin sees it
//	process.go   a running plugin
//	manager.go   all plugins
//	slot.go      which strategy and which malleability policy are in use
//	change.go    changing it
//	faults.go    what is done about a plugin that fails
//	cycle.go     one planning cycle
//	report.go    what administrators see
//
// A plugin's keeper is this executable once more: it starts the plugin, watches
// what memory all its processes use, and kills every one of them when the plugin
// ends, is to end, or the sidecar is gone, however that ended.
package pluginhost
