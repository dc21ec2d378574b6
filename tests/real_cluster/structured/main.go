// Answers one question per line of standard input with Kubernetes' own structured allocator.
//
// A question has a node, the resource slices and device classes, the claims that hold devices, and the claims
// to allocate; the answer has the allocations, or null where the node cannot serve the claims.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type question struct {
	Node    *corev1.Node                 `json:"node"`
	Slices  []*resourceapi.ResourceSlice `json:"slices"`
	Classes []*resourceapi.DeviceClass   `json:"classes"`
	Held    []*resourceapi.ResourceClaim `json:"held"`
	Claims  []*resourceapi.ResourceClaim `json:"claims"`
}

type answer struct {
	Allocations []resourceapi.AllocationResult `json:"allocations"`
	Error       string                         `json:"error,omitempty"`
}

type classLister []*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) { return l, nil }

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("device class %s not found", name)
}

var features = structured.Features{
	AdminAccess:          true,
	ConsumableCapacity:   true,
	DeviceTaints:         true,
	PartitionableDevices: true,
	PrioritizedList:      true,
}

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<24)
	out := json.NewEncoder(os.Stdout)
	cache := cel.NewCache(1000, cel.Features{EnableConsumableCapacity: true})
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := out.Encode(respond(line, cache)); err != nil {
			panic(err)
		}
	}
}

func respond(line []byte, cache *cel.Cache) (reply answer) {
	// Version 1.35 panics where all devices are requested and one of them draws from counters.
	defer func() {
		if failure := recover(); failure != nil {
			reply = answer{Error: fmt.Sprintf("panic: %v", failure)}
		}
	}()
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{Error: "unreadable: " + err.Error()}
	}
	ctx := context.Background()
	allocator, err := structured.NewAllocator(
		ctx, features, heldBy(q.Held), classLister(q.Classes), q.Slices, cache)
	if err != nil {
		return answer{Error: err.Error()}
	}
	allocations, err := allocator.Allocate(ctx, q.Node, q.Claims)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Allocations: allocations}
}

// heldBy counts what claims hold as kube-scheduler does.
func heldBy(claims []*resourceapi.ResourceClaim) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			switch {
			case result.AdminAccess != nil && *result.AdminAccess:
			case result.ShareID != nil:
				state.AllocatedSharedDeviceIDs.Insert(
					structured.MakeSharedDeviceID(id, result.ShareID))
				state.AggregatedCapacity.Insert(
					structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			default:
				state.AllocatedDevices.Insert(id)
			}
		}
	}
	return state
}
