package injob

import (
	"fmt"
	"slices"
	"strings"

	"github.com/evoslurm/evoslurm/adapter/api"
	"github.com/evoslurm/evoslurm/adapter/job/request"
	"github.com/evoslurm/evoslurm/slurmctl"
)

// OfComponent returns the part of an allocation that a component has; with no name, all of it.
func OfComponent(a api.Allocation, name string) (api.Allocation, error) {
	if name == "" {
		return a, nil
	}
	at := slices.IndexFunc(a.Components, func(c api.Component) bool { return c.Name == name })
	if at < 0 {
		var names []string
		for _, c := range a.Components {
			names = append(names, c.Name)
		}
		if names == nil {
			return a, fmt.Errorf("--component=%s: the job has no components", name)
		}
		return a, fmt.Errorf("--component=%s: the job has no such component, but %s", name, strings.Join(names, ", "))
	}
	parts := a.Parts
	a.Parts, a.Nodes = nil, 0
	for _, p := range parts {
		q := api.Part{Job: p.Job}
		for i, node := range p.NodeList {
			if slices.Contains(a.Components[at].NodeList, node) && i < len(p.CPUs) {
				q.NodeList, q.CPUs = append(q.NodeList, node), append(q.CPUs, p.CPUs[i])
			}
		}
		if len(q.NodeList) > 0 {
			a.Parts, a.Nodes = append(a.Parts, q), a.Nodes+len(q.NodeList)
		}
	}
	return a, nil
}

// presentOf does what OfComponent does, and returns an error if the component has no nodes now.
func presentOf(a api.Allocation, name string) (api.Allocation, error) {
	part, err := OfComponent(a, name)
	if err == nil && name != "" && len(part.Parts) == 0 {
		err = fmt.Errorf("--component=%s: it has no nodes in step %d", name, a.Step)
	}
	return part, err
}

// componentVars returns a variable with the nodes of each component.
func componentVars(a api.Allocation) (vars []Var) {
	for _, c := range a.Components {
		vars = append(vars, Var{VarNodeList + "_" + c.Name, slurmctl.CompressNodes(c.NodeList)})
	}
	return vars
}

// checkComponents refuses components that no job has.
func checkComponents(a api.Allocation) error {
	of := map[string]string{}
	for _, c := range a.Components {
		if err := request.CheckComponent(c.Name); err != nil {
			return fmt.Errorf("the sidecar's answer about job %d: %w", a.Job, err)
		}
		for _, node := range c.NodeList {
			if !validNode(node) {
				return noNode(a.Job, node)
			}
			if other, twice := of[node]; twice {
				return fmt.Errorf("the sidecar's answer about job %d: %s is in components %s and %s", a.Job, node, other, c.Name)
			}
			of[node] = c.Name
		}
	}
	return nil
}
