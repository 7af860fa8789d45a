// Package pluginhost runs strategies for the sidecar: built-in ones, and plugin processes. It finds
// plugins in a folder, starts them on demand as an unprivileged user with limits on memory and
// time, and verifies their answers. If a plugin fails, the built-in default plans in the same
// cycle.
//
//	discover.go  what is in the folder
//	keeper.go    the process around each plugin: limits, and no process left behind
//	tree.go      a process's descendants
//	runner.go    the keeper as go-plugin sees it
//	process.go   a running plugin
//	manager.go   all plugins
//	slot.go      which strategy and which malleability policy are in use
//	change.go    changing it
//	faults.go    handling of a plugin that fails
//	cycle.go     one planning cycle
//	report.go    what administrators see
//
// A plugin's keeper is another process of this executable. It starts the plugin, watches the memory
// of all its processes, and kills every one of them when the plugin ends, when it should end, or
// when the sidecar is gone for any reason.
package pluginhost
