// Package axetest checks the accessibility of pages with axe-core, for tests with the tag browser.
package axetest
