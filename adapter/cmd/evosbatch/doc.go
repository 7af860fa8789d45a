// Command evosbatch submits an evolving job: sbatch with an evolution profile.
// What it does is in package submit.
package main
