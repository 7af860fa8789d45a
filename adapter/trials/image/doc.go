// Package image tries the image that make image builds: it is unpacked, and its sidecar runs in namespaces of its own, as the
// image's user, beside a private Slurm. make try-image does both.
package image
