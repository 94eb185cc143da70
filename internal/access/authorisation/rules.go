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
	// roles may call; nobody else may, unless public.
	roles []access.Role
	// public methods are answered without asking who calls.
	public bool
	// own restricts callers to what is theirs.
	own property
	// gone methods answer for what is gone as if they had done it: they do so for others' private jobs, too.
	gone bool
	// log says which calls the audit log gets. It gets refusals of every method.
	log logged
}

// property is what a call may be restricted to; 0 = nothing.
type property int

const (
	// ownJob is the job of the request's job_id; admins may deal with everybody's.
	ownJob property = iota + 1
	// ownSession is the session, or the lease's session, of the request.
	ownSession
)

// logged says which calls the audit log gets.
type logged int

const (
	refusals logged = iota
	// noted calls are written down; while that is impossible they go on, since work that is done must not be lost.
	noted
	// audited calls are refused while they cannot be written down.
	audited
)

// Who may call, by what is asked for.
var (
	readers = []access.Role{access.ReadOnly, access.Client, access.Admin}
	clients = []access.Role{access.Client, access.Admin}
	admins  = []access.Role{access.Admin}
	agents  = []access.Role{access.Agent}
	all     = access.Roles()
	// Candidates travel between builders and runners, packages from clients to runners, models to tuners.
	carriers = []access.Role{access.Client, access.Admin, access.Agent}
)

// rules has a line for every method that a tracker serves. A method without one is refused to everybody; a test sees
// to it that there is none.
var rules = map[string]rule{
	tilthv1.JobService_SubmitJob_FullMethodName:        {roles: clients, log: audited},
	tilthv1.JobService_GetJob_FullMethodName:           {roles: readers},
	tilthv1.JobService_ListJobs_FullMethodName:         {roles: all}, // a tuner looks at jobs of the same target
	tilthv1.JobService_WatchJob_FullMethodName:         {roles: all}, // a tuner learns from its job's events
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
	// Whoever sits at a board may keep others from it.
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

	// What is in a release is no secret, but who has no business with it makes no load.
	tilthv1.ReleaseService_GetRelease_FullMethodName:      {roles: agents},
	tilthv1.ReleaseService_DownloadRelease_FullMethodName: {roles: agents},

	// A probe has no token; what it learns is that there is a tracker.
	healthv1.Health_Check_FullMethodName: {public: true},
	healthv1.Health_List_FullMethodName:  {roles: all},
	healthv1.Health_Watch_FullMethodName: {roles: all},

	reflectionv1.ServerReflection_ServerReflectionInfo_FullMethodName:      {roles: all},
	reflectionv1alpha.ServerReflection_ServerReflectionInfo_FullMethodName: {roles: all},
}

// Public says whether a method is for everybody.
func Public(method string) bool { return rules[method].public }

// Methods returns the methods that have a rule, in order.
func Methods() []string { return slices.Sorted(maps.Keys(rules)) }
