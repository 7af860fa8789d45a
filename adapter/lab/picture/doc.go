// Package picture draws plans and comparisons of strategies: Gantt charts in
// which a job's height is the nodes it holds, and box plots of the metrics over
// many workloads. Pictures are SVG, PNG, or an HTML page around an SVG.
package picture
