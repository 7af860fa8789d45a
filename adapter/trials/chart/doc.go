// Package chart tries the Helm chart in contrib/helm: what it renders is kept in testdata, and bad values are refused
// by name. make chart runs it with Helm.
package chart
