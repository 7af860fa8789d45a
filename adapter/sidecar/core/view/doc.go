// Package view answers questions: what users and tests see of the state. It changes nothing.
package view
