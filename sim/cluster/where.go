package cluster

import "github.com/lambdanic/lambdanic/internal/placement"

// PartUse says where a microservice's shards went.
type PartUse struct {
	Stage       int    `json:"stage"` // from 1
	Service     string `json:"service"`
	Hosts       int    `json:"shards_on_hosts"`
	NICs        int    `json:"shards_on_nics"`
	BackupHosts int    `json:"backups_on_hosts"`
	BackupNICs  int    `json:"backups_on_nics"`
}

// Parts say where each microservice went, stage by stage. Instances come first in a deployment, and then the backups of each.
func (p *Placed) Parts() (all []PartUse) {
	at := make(map[*Part]int)
	for number, stage := range p.Application.Stages {
		for i := range stage {
			at[&stage[i]] = len(all)
			all = append(all, PartUse{Stage: number + 1, Service: stage[i].Service.Name})
		}
	}
	n := len(p.instances)
	backups := len(p.Deployment.App.Services)/n - 1
	for i := range p.Deployment.App.Services {
		backup, in := i >= n, i
		if backup {
			in = (i - n) / backups
		}
		u := &all[at[p.instances[in].part]]
		count := map[bool]map[placement.Kind]*int{
			false: {placement.Host: &u.Hosts, placement.NIC: &u.NICs}, true: {placement.Host: &u.BackupHosts, placement.NIC: &u.BackupNICs},
		}[backup][p.node(i).kind]
		*count++
	}
	return all
}

// shards counts the shards of each service on each node.
func (p *Placed) shards() []map[string]int {
	all := make([]map[string]int, len(p.Cluster.nodes))
	for i := range p.instances {
		id := p.Deployment.Node(i)
		if all[id] == nil {
			all[id] = make(map[string]int)
		}
		all[id][p.instances[i].part.Service.Name]++
	}
	return all
}

// agreement is how much more active power may be than what servers take beyond idle: they are measured at different times, of different things.
const agreement = 1.25

// Disagree says what the servers take beyond idle, in W, and whether active power is so much more that a cluster of these servers cannot be where the
// services were measured. Both grow with the load, so they disagree at any load.
func (p *Placed) Disagree(w Power) (beyond float64, much bool) {
	beyond = w.Wall - p.Cluster.total(func(s *System) float64 { return s.Idle })
	return beyond, w.Active > agreement*beyond
}
