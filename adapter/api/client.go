package api

const unixPrefix = "unix://"
