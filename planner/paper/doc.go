// Package paper is the core of Klein and Pérez, "Towards Scheduling Evolving Applications" (2011):
// problems, list scheduling (Algorithm 1), the fit (Algorithm 2) with compacting, the baseline
// without evolution, the conditions C1 and C2, and the metrics. It also holds our extensions that
// work on one job at a time: the fit with the least waste, and keeping plans when fewer nodes are
// left.
package paper
