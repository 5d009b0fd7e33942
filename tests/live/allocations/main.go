package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type Case struct {
	ID             string                       `json:"id"`
	Nodes          []*v1.Node                   `json:"nodes"`
	ResourceSlices []*resourceapi.ResourceSlice `json:"resourceSlices"`
	DeviceClasses  []*resourceapi.DeviceClass   `json:"deviceClasses"`
	ResourceClaims []*resourceapi.ResourceClaim `json:"resourceClaims"`
	Wanted         []string                     `json:"wanted"`
}

type lister map[string]*resourceapi.DeviceClass

func (l lister) List() ([]*resourceapi.DeviceClass, error) {
	var out []*resourceapi.DeviceClass
	for _, c := range l {
		out = append(out, c)
	}
	return out, nil
}
func (l lister) Get(name string) (*resourceapi.DeviceClass, error) {
	if c, ok := l[name]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("class %s not found", name)
}

type Answer struct {
	Results []resourceapi.AllocationResult `json:"results,omitempty"`
	Error   string                         `json:"error,omitempty"`
	OnNode  bool                           `json:"onNode,omitempty"`
}

func main() {
	features := structured.Features{AdminAccess: true, PrioritizedList: true, PartitionableDevices: true, DeviceTaints: true,
		DeviceBindingAndStatus: true, ConsumableCapacity: true, FractionalCapacityRange: true}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<26), 1<<26)
	cache := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	for in.Scan() {
		var c Case
		if err := json.Unmarshal(in.Bytes(), &c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		state := structured.AllocatedState{
			AllocatedDevices:         sets.New[structured.DeviceID](),
			AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
			AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
		}
		byName := map[string]*resourceapi.ResourceClaim{}
		for _, claim := range c.ResourceClaims {
			byName[claim.Name] = claim
			if claim.Status.Allocation == nil {
				continue
			}
			for _, r := range claim.Status.Allocation.Devices.Results {
				if r.AdminAccess != nil && *r.AdminAccess {
					continue
				}
				id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
				if r.ShareID != nil {
					state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
					if r.ConsumedCapacity != nil {
						state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
					}
					continue
				}
				state.AllocatedDevices.Insert(id)
			}
		}
		classes := lister{}
		for _, class := range c.DeviceClasses {
			classes[class.Name] = class
		}
		var claims []*resourceapi.ResourceClaim
		for _, name := range c.Wanted {
			claims = append(claims, byName[name])
		}
		out := map[string]Answer{}
		for _, node := range c.Nodes {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			alloc, err := structured.NewAllocator(ctx, features, state, classes, c.ResourceSlices, cache)
			if err != nil {
				out[node.Name] = Answer{Error: "new: " + err.Error()}
				cancel()
				continue
			}
			results, err := alloc.Allocate(ctx, node, claims)
			cancel()
			if err != nil {
				out[node.Name] = Answer{Error: err.Error(), OnNode: errors.Is(err, structured.ErrFailedAllocationOnNode)}
			} else {
				out[node.Name] = Answer{Results: results}
			}
		}
		line, _ := json.Marshal(map[string]any{"id": c.ID, "nodes": out})
		fmt.Println(string(line))
	}
}
