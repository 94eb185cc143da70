package authorisation

import (
	"maps"
	"slices"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	reflectionv1alpha "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/tilth-dev/tilth/internal/access"
	tilthv1 "github.com/tilth-dev/tilth/proto/tilth/v1"
)

// rule says who may call a method.
type rule struct {
	// roles may call the method; all others are refused, unless public.
	roles []access.Role
	// public methods need no authentication.
	public bool
	// own restricts callers to their own jobs or sessions.
	own property
	// gone methods report success for jobs that no longer exist, and therefore also for private jobs of others.
	gone bool
	// log selects the calls that are written to the audit log. Refusals are written for every method.
	log logged
}

// property is the kind of ownership that a method requires; 0 = none.
type property int

const (
	// ownJob requires that the caller owns the job in job_id; admins may access all jobs.
	ownJob property = iota + 1
	// ownSession requires that the caller owns the session, or the lease's session, of the request.
	ownSession
)

// logged selects the calls that are written to the audit log.
type logged int

const (
	refusals logged = iota
	// noted calls are logged. They proceed while the log cannot be written, since finished work must not be lost.
	noted
	// audited calls are refused while the log cannot be written.
	audited
)

// Groups of roles.
var (
	readers = []access.Role{access.ReadOnly, access.Client, access.Admin}
	clients = []access.Role{access.Client, access.Admin}
	admins  = []access.Role{access.Admin}
	agents  = []access.Role{access.Agent}
	all     = access.Roles()
	// Builders and runners exchange candidates, clients and runners packages, tuners receive models.
	carriers = []access.Role{access.Client, access.Admin, access.Agent}
)

// rules has an entry for every method of the tracker. A method without an entry is refused to everybody; a test checks
// that none is missing.
var rules = map[string]rule{
	tilthv1.JobService_SubmitJob_FullMethodName:        {roles: clients, log: audited},
	tilthv1.JobService_GetJob_FullMethodName:           {roles: readers},
	tilthv1.JobService_ListJobs_FullMethodName:         {roles: all}, // tuners read jobs of the same target
	tilthv1.JobService_WatchJob_FullMethodName:         {roles: all}, // tuners follow the events of their job
	tilthv1.JobService_CancelJob_FullMethodName:        {roles: clients, own: ownJob, log: audited},
	tilthv1.JobService_DeleteJob_FullMethodName:        {roles: clients, own: ownJob, gone: true, log: audited},
	tilthv1.JobService_PauseJob_FullMethodName:         {roles: clients, own: ownJob, log: audited},
	tilthv1.JobService_ResumeJob_FullMethodName:        {roles: clients, own: ownJob, log: audited},
	tilthv1.JobService_RetryDeadLetters_FullMethodName: {roles: clients, own: ownJob, log: audited},
	tilthv1.JobService_ListOwners_FullMethodName:       {roles: readers},
	tilthv1.JobService_CheckFarm_FullMethodName:        {roles: readers},

	tilthv1.AgentService_Join_FullMethodName:        {roles: agents, log: noted},
	tilthv1.AgentService_Heartbeat_FullMethodName:   {roles: agents, own: ownSession},
	tilthv1.AgentService_LeaseWork_FullMethodName:   {roles: agents, own: ownSession},
	tilthv1.AgentService_EndWait_FullMethodName:     {roles: agents, own: ownSession},
	tilthv1.AgentService_ReturnLease_FullMethodName: {roles: agents, own: ownSession},
	tilthv1.AgentService_Leave_FullMethodName:       {roles: agents, own: ownSession, log: noted},
	tilthv1.AgentService_ListAgents_FullMethodName:  {roles: readers},
	tilthv1.AgentService_GetAgent_FullMethodName:    {roles: readers},

	tilthv1.SearchService_ProposeBatch_FullMethodName:        {roles: agents, own: ownSession},
	tilthv1.SearchService_FinishJob_FullMethodName:           {roles: agents, own: ownSession},
	tilthv1.SearchService_ReportModel_FullMethodName:         {roles: agents, own: ownSession},
	tilthv1.BuildService_ReportBuild_FullMethodName:          {roles: agents, own: ownSession},
	tilthv1.MeasureService_ReportMeasurements_FullMethodName: {roles: agents, own: ownSession},

	tilthv1.DeviceService_ListDevices_FullMethodName: {roles: readers},
	tilthv1.DeviceService_GetDevice_FullMethodName:   {roles: readers},
	// Anyone at a board may reserve it.
	tilthv1.DeviceService_CordonDevice_FullMethodName:      {roles: clients, log: audited},
	tilthv1.DeviceService_UncordonDevice_FullMethodName:    {roles: clients, log: audited},
	tilthv1.DeviceService_DrainDevice_FullMethodName:       {roles: clients, log: audited},
	tilthv1.DeviceService_RecalibrateDevice_FullMethodName: {roles: admins, log: audited},
	tilthv1.DeviceService_ReportCalibration_FullMethodName: {roles: agents, own: ownSession},

	tilthv1.RunService_ReportRun_FullMethodName: {roles: agents, own: ownSession},

	tilthv1.RecordService_BestRecords_FullMethodName:   {roles: all},
	tilthv1.RecordService_ListRecords_FullMethodName:   {roles: all},
	tilthv1.RecordService_ImportRecords_FullMethodName: {roles: admins, log: audited},

	tilthv1.RecordService_ListRecordGroups_FullMethodName:   {roles: all},
	tilthv1.RecordService_ListRecordKeys_FullMethodName:     {roles: all},
	tilthv1.RecordService_FindLackingRecords_FullMethodName: {roles: all},
	tilthv1.RecordService_GetRecords_FullMethodName:         {roles: all},

	tilthv1.AdminService_BackupStore_FullMethodName:  {roles: admins, log: audited},
	tilthv1.AdminService_PruneRecords_FullMethodName: {roles: admins, log: audited},

	tilthv1.ArtifactService_StatArtifact_FullMethodName:     {roles: carriers},
	tilthv1.ArtifactService_UploadArtifact_FullMethodName:   {roles: carriers},
	tilthv1.ArtifactService_DownloadArtifact_FullMethodName: {roles: carriers},

	// Releases are not secret; the restriction limits load.
	tilthv1.ReleaseService_GetRelease_FullMethodName:      {roles: agents},
	tilthv1.ReleaseService_DownloadRelease_FullMethodName: {roles: agents},

	// Probes have no token, and learn only that a tracker exists.
	healthv1.Health_Check_FullMethodName: {public: true},
	healthv1.Health_List_FullMethodName:  {roles: all},
	healthv1.Health_Watch_FullMethodName: {roles: all},

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {roles: all},
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {roles: all},
}

// Public reports whether a method needs no authentication.
func Public(method string) bool { return rules[method].public }

// Methods returns the methods that have a rule, sorted.
func Methods() []string { return slices.Sorted(maps.Keys(rules)) }
