package loadtest

// Report is the result of a simulation. Its JSON is a contract of the command line.
type Report struct {
	Devices int `json:"devices"`
	// ResultsPerSecond counts trials whose record was acknowledged.
	ResultsPerSecond float64 `json:"results_per_s"`
	// Latencies are measured by the agents; see meter.
	LeaseP50  float64 `json:"lease_p50_s"`
	LeaseP99  float64 `json:"lease_p99_s"`
	ResultP99 float64 `json:"result_p99_s"`
	// RSSBytes is the peak resident memory of the tracker's process, including pages of the mapped records file. With
	// several trackers it is that of the largest.
	RSSBytes int64 `json:"rss_bytes"`
	// TrackerCPUSeconds is the processor time of all trackers per result.
	TrackerCPUSeconds float64 `json:"tracker_cpu_s_per_result"`
	// FsyncsPerSecond counts two per transaction of a file: for its pages and for the meta page. It is omitted for a
	// database.
	FsyncsPerSecond float64 `json:"fsyncs_per_s,omitempty"`
	// Database holds the database's totals; nil for a file.
	Database *DatabaseReport `json:"database,omitempty"`
	// Trackers lists the trackers of a database.
	Trackers []TrackerReport `json:"trackers,omitempty"`
	// Lost and Duplicated compare the acknowledged data with the store after the trackers were killed; see
	// verdict.
	Lost       int `json:"lost"`
	Duplicated int `json:"duplicated"`
}

// DatabaseReport holds a database's work per result.
type DatabaseReport struct {
	// Transactions counts all transactions of the database, including reads.
	Transactions float64 `json:"transactions_per_result"`
	// CPUSeconds is the processor time of all server processes; 0 if unknown.
	CPUSeconds float64 `json:"cpu_s_per_result,omitempty"`
}

// TrackerReport describes one of several trackers.
type TrackerReport struct {
	// ResultsPerSecond counts the results that it acknowledged.
	ResultsPerSecond float64 `json:"results_per_s"`
	RSSBytes         int64   `json:"rss_bytes"`
}

// Details holds further observations.
type Details struct {
	Report
	Jobs        int `json:"jobs"`
	Agents      int `json:"agents"`
	Connections int `json:"connections"` // to each tracker
	Shards      int `json:"shards"`
	// RecordsBefore is the number of records in the store before the run.
	RecordsBefore int `json:"records_before"`
	// ResultsPerSecond is Results divided by Seconds.
	Results int     `json:"results"`
	Seconds float64 `json:"took_s"`
	// ResultsPerReport is the mean number of results in a report.
	ResultsPerReport float64 `json:"results_per_report"`
	// Leases is the number of measured lease latencies.
	Leases int `json:"leases"`
	// CallsPerSecond counts all answered calls except streams. A call to all shards counts once.
	CallsPerSecond float64 `json:"calls_per_s"`
	// Lives counts the sessions of agents, Kills those of trackers before the end.
	Lives int64 `json:"lives"`
	Kills int   `json:"kills"`
	// TrackerLoad is the mean number of processors that all trackers used.
	TrackerLoad float64 `json:"tracker_load"`
	// AgentsCPUSeconds is the processor time of the simulated agents per result, on the same machine.
	AgentsCPUSeconds float64 `json:"agents_cpu_s_per_result"`
	// RSSAnonymousBytes is the tracker's memory without mapped files at the end; of several, the largest's.
	RSSAnonymousBytes int64 `json:"rss_anonymous_bytes"`
	// RestartSeconds is the time from the start of the trackers after the final kill to the first answer of all
	// shards.
	RestartSeconds float64 `json:"restart_s"`
	// FileBytes is the size of the records file, or of the database.
	FileBytes int64 `json:"file_bytes"`
}
