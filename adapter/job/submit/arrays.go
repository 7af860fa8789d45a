package submit

import (
	"fmt"
)

// longestName is the longest job name of an array, to which the sidecar adds a word for the tasks that wait.
const longestName = 1000

// checkArray refuses an array whose tasks cannot evolve, each on its own.
func (r submission) checkArray() error {
	tasks, is := r.options.last("array")
	name, named := r.options.last("job-name")
	switch {
	case !is:
		return nil
	case len(r.request.Components) > 0:
		return fmt.Errorf("%s: a job with components (--component) cannot be an array yet: submit one job for each task", tasks)
	case r.request.Drive.Means().StepsAreJobs:
		return fmt.Errorf("%s: a chain cannot be an array: its steps are jobs of their own", tasks)
	case r.request.Drive.Means().MergesGrowths:
		return fmt.Errorf("%s: Slurm merges nothing into the task that keeps an array's job ID, nor well where %%N limits the array: leave --drive=merge out, and the sidecar chooses for each task", tasks)
	case named && len(name.Value) > longestName:
		return fmt.Errorf("%s: the name of an array has at most %d bytes", name, longestName)
	}
	return nil
}
