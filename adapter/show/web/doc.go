// Package web is the web page: the cluster's Gantt chart by node and by job, the details of each
// job, and the strategies. The server renders everything as HTML and SVG, which need no JavaScript;
// with JavaScript (htmx, embedded), the page updates itself.
//
//	handler.go   routes, headers, errors        window.go     what the address asks for
//	gantt.go     the chart by node and by job   job.go        a job's page
//	shape.go     paths of SVG                   strategies.go strategies, and what try tells
//	series.go    nodes over time, by uPlot      overview.go   what promises cost, for operators
//
// It reads through a Reader, which tells each caller only what it may read: an api.Visitor in the
// sidecar, an api.Client in "evosctl web". It queries neither Slurm nor, except for events, a
// database, and it bounds what one answer draws. All links are relative, so it works below any path
// of a proxy. Times are those of the sidecar's machine, not of the browser.
package web
