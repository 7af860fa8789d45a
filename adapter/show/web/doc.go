// Package web is the page: the cluster's Gantt chart by node and by job, what is known of each
// job, and the strategies. Everything is made on the server, as HTML and SVG that is read
// without JavaScript; with it (htmx, embedded) the page follows what happens.
//
//	handler.go   routes, headers, errors        window.go     what the address asks for
//	gantt.go     the chart by node and by job   job.go        a job's page
//	shape.go     paths of SVG                   strategies.go strategies, and what try tells
//	series.go    nodes over time, by uPlot
//
// It reads through a Reader, which tells each caller what he may read: an api.Visitor in the
// sidecar, an api.Client in "evosctl web". It asks neither Slurm nor a database but for
// events, and what one answer draws is bounded. All links are relative, so that it works
// below any path of a proxy. Times are those of the sidecar's machine; the browser's clock is
// not asked.
package web
