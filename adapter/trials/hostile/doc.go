// Package hostile holds a permanent attack on the sidecar: an ordinary user of a private
// Slurm attacks while another user's evolving and stock jobs run. Its tests are all there is.
//
// A round runs one attack (or, in the short form, many at once) and then checks what the sidecar
// owes others: the other user's job had its nodes within two seconds of asking for them, no other
// job was touched, the sidecar lives and stayed below 200 MiB, and nothing is left in Slurm.
// docs/threat-model.md maps attacks to tests.
//
// Where root may mount, the whole suite runs with a /tmp of its own, since an attack takes names there.
package hostile
