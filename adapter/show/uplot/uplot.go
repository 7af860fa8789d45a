// Package uplot is uPlot 1.6.32 by Leon Sorokin, a chart library for browsers, as published on npm
// (package uplot, dist/). Its licence (MIT) is in LICENSE beside it.
package uplot

import _ "embed"

// Version is the version of the files.
const Version = "1.6.32"

// Script defines uPlot for scripts after it.
//
//go:embed uPlot.iife.min.js
var Script string

// Style is the style sheet that belongs to it.
//
//go:embed uPlot.min.css
var Style string

// Licence goes with every copy.
//
//go:embed LICENSE
var Licence string
