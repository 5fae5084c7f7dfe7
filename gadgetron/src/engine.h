// Reconstructs images by recon's C API. It keeps plans and coil maps for the next images: plans by their trajectory,
// coil maps by their slice. A plan whose trajectory has not come again is given the next one.
#pragma once

#include "settings.h"

#include <recon.h>

#include <complex>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <tuple>

namespace recon_gadgets {

// Encoding, slice, contrast, phase and set. Acquisitions with the same key share coil maps and a sliding window.
using SliceKey = std::tuple<std::size_t, unsigned, unsigned, unsigned, unsigned>;
SliceKey slice_key(const ISMRMRD::AcquisitionHeader &header);

// What the log and the image's attributes say about a reconstruction.
struct Result {
    std::size_t iterations = 0;
    double residual = 0;
    BladesFound blades;        // of PROPELLER
    std::string timing;        // "plan 1.2 ms, ..."
    std::uint64_t memory = 0;  // estimated bytes; 0 where a kept plan was used
    std::vector<Warning> warnings;
};

// There is one engine for each gadget and connection. It makes plans when it first needs them: a plan has threads, and
// Gadgetron forks for each connection.
class Engine {
public:
    explicit Engine(Settings settings);

    const Settings &settings() const { return settings_; }

    // Reads the maps that are files. Ends with an error where one cannot be read.
    void read_voxel_maps();
    // A map from the chain, for the images of its slice that come after it.
    void add_voxel_map(MapKind kind, unsigned slice, const std::array<std::size_t, 3> &dims, std::vector<float> values);
    // Remembers why an image of the chain cannot be a map, for the error of its slice.
    void refuse_voxel_map(MapKind kind, unsigned slice, std::string reason) {
        voxel_maps_.refuse(kind, slice, std::move(reason));
    }
    // Whether images in the chain are looked for.
    bool takes_voxel_maps(MapKind kind) const { return source(kind).images; }

    // The matrices of an image, and its number of channels.
    Grid layout(const Spaces &spaces, unsigned ndim) const;
    std::size_t channels(std::size_t coils) const;

    // Adds samples to the sliding window, and returns all samples of the window. If the new samples do not fit the
    // older ones, it removes these from the window and sets `warning`.
    Samples add_to_window(Samples samples, std::optional<Warning> *warning = nullptr);
    // Removes the newest samples of a window again. Called where their reconstruction failed.
    void remove_from_window(const Samples &samples);

    // `image`: [grid.image, channels], written. `reference`: calibration data that coil maps are estimated from, or
    // null: then they are estimated from `samples`. `pending`:
    // bytes of images that are allocated, but not written yet.
    Result reconstruct(const Samples &samples, const Spaces &spaces, const Samples *reference, Complex *image,
                       std::uint64_t pending = 0);

    // The name of a property that no image can be made with, and the error: a missing GPU, an unreachable tolerance, or
    // too many threads.
    std::optional<std::pair<std::string, std::string>> bad_property() const;

    // Bytes that the first image with these samples needs, without the samples and outputs. `k` are the coordinates of
    // `samples`.
    std::uint64_t memory_needed(const Samples &samples, const Coordinates &k, const Spaces &spaces,
                                const Samples *reference) const;

    // Counters for tests.
    std::size_t plans_made() const { return plans_made_; }
    std::size_t plans_updated() const { return plans_updated_; }
    std::size_t maps_made() const { return maps_made_; }

private:
    struct Destroy {
        void operator()(recon_plan *plan) const { recon_plan_destroy(plan); }
    };
    using Plan = std::unique_ptr<recon_plan, Destroy>;

    // Coil sensitivity maps, [dims, coils]. A plan names its maps by their id.
    struct CoilMaps {
        std::size_t id = 0, coils = 0, images = 0;
        std::array<std::size_t, 3> dims{};
        std::vector<Complex> maps;
    };

    // The matrix that makes virtual coils of coils.
    struct CoilMatrix {
        std::size_t coils = 0;
        std::uint64_t virtual_coils = 0;
        std::vector<std::complex<double>> entries;
    };

    // The maps of off-resonance and decay for an image, and the times of its samples; null and empty where there are
    // none.
    struct OffResonance {
        const VoxelMap *field = nullptr, *decay = nullptr;
        std::vector<float> times;

        // Which maps there are, by their ids.
        std::pair<std::size_t, std::size_t> ids() const {
            return {field == nullptr ? 0 : field->id, decay == nullptr ? 0 : decay->id};
        }
        void add_to(recon_geometry &geometry) const {
            geometry.field_map = field == nullptr ? nullptr : field->values.data();
            geometry.decay_map = decay == nullptr ? nullptr : decay->values.data();
            geometry.times = times.empty() ? nullptr : times.data();
        }
    };

    // A plan, and what it was made from.
    struct KeptPlan {
        std::vector<float> trajectory;
        std::size_t components = 0, coils = 0, maps = 0;
        bool weighted = false;
        std::pair<std::size_t, std::size_t> voxel_maps;  // their ids
        std::vector<ShotTimes> times;                    // with voxel maps
        std::array<std::size_t, 3> dims{};
        bool recurs = false;  // the trajectory came again
        Plan plan;
        std::uint64_t bytes = 0;
    };

    // Where a plan's density weights come from.
    enum class Weights { None, Given, Computed };

    // The image before it is resized, from which the next one's iterations may start.
    struct LastImage {
        std::size_t images = 0;
        std::array<std::size_t, 3> dims{};
        std::vector<Complex> values;
    };

    recon_options options(double tolerance) const;
    // Of the plans that coil maps are estimated by.
    double tolerance_of_maps() const;
    recon_geometry geometry(const Coordinates &k, const Grid &grid, std::size_t coils) const;
    const MapSource &source(MapKind kind) const {
        return kind == MapKind::Field ? settings_.field_map : settings_.decay_map;
    }
    // Ends with an error where a map is wanted and not there, or does not fit.
    void check_voxel_map(MapKind kind, const Samples &samples, const Spaces &spaces);
    OffResonance off_resonance(const Samples &samples) const;
    void add_warning(Cause cause, std::string text);
    // Adds the warnings of a plan to those of the image.
    void add_warnings(const recon_plan *plan, bool for_maps = false);
    // The warnings of the library's last call. `of` goes before their texts.
    void add_warnings_of_call(const std::string &of = "");
    // Ends with an error that names the shot where a call refused the coordinates.
    void check_coordinates(const Samples &samples, recon_status status) const;
    // `for_maps`: the plan estimates coil maps, for which k may reach a small part of k-space only.
    Plan make_plan(const Samples &samples, const recon_geometry &geometry, double tolerance, bool for_maps = false);
    // The weights of plans for gridding, or for conjugate gradients. The library computes Pipe and Menon's for gridding
    // itself.
    Weights weights(const Samples &samples, bool use_weights, bool explicitly) const;
    Weights weights(const Samples &samples) const;
    // Computes density weights for the trajectory of a plan without, and gives them to it.
    void compute_weights(recon_plan *plan, std::size_t samples) const;
    // A plan for the samples.
    Plan weighted_plan(const Samples &samples, const Grid &grid, Weights weights, const CoilMaps *maps,
                       const OffResonance &field, double tolerance);
    // A plan that estimates coil maps.
    Plan plan_of_maps(const Samples &samples, const Grid &grid);
    KeptPlan &find_or_make_plan(const Samples &samples, const Grid &grid, const CoilMaps *maps,
                                const OffResonance &field);
    // A kept plan that may be given the trajectory, since its own has not come again; or the end.
    std::list<KeptPlan>::iterator find_free_plan(const Samples &samples, const Grid &grid, std::size_t maps,
                                                 const OffResonance &field);
    void update_plan(KeptPlan &kept, const Samples &samples, const Grid &grid, const OffResonance &field);
    // Whether a trajectory is one of the last that new plans or new trajectories for plans were made of.
    bool came_before(const Samples &samples, std::size_t maps, const OffResonance &field);
    const CoilMaps &coil_maps(const Samples &samples, const Grid &grid, std::size_t coils, const SliceKey &key);
    // The matrix of a slice, from the data of its first image: images of a slice can be compared, and share maps.
    const CoilMatrix &compression(const Samples &samples);
    Samples compressed(const Samples &samples, const CoilMatrix &matrix) const;
    // The gridding of blades without their motion, [grid.dims, images], and that motion.
    BladesFound correct_blades(const Samples &samples, const Spaces &spaces, const Grid &grid, const CoilMaps *maps,
                               Complex *image);
    // `samples` and `reference` have the coils that are reconstructed.
    Result reconstruct_coils(const Samples &samples, const Spaces &spaces, const Samples *reference, Complex *image,
                             std::uint64_t pending);
    void drop_plans();
    // Returns the bytes that an image needs. Drops kept plans where memory is short. If that is not enough, it ends
    // with an error.
    std::uint64_t check_memory(const Samples &samples, const Spaces &spaces, const Samples *reference,
                               std::uint64_t pending);
    bool is_alike(const KeptPlan &plan, const Samples &samples, const Grid &grid, std::size_t maps,
                  const OffResonance &field) const;
    bool is_kept(const KeptPlan &plan, const Samples &samples, const Grid &grid, std::size_t maps,
                 const OffResonance &field) const;
    // The image that iterations start from, or null where there is none of this shape.
    const Complex *initial_image(const SliceKey &key, const Grid &grid, std::size_t images);
    // Ends with an error unless a call that took the samples succeeded.
    void check_data(const Samples &samples, recon_status status) const;
    // Finds the value that is not finite, and ends with an error that names its shot, sample and coil.
    [[noreturn]] void not_finite(const Samples &samples) const;
    bool uses_maps(std::size_t coils) const;

    Settings settings_;
    std::list<KeptPlan> plans_;  // the last used plan is the first
    std::map<SliceKey, CoilMaps> maps_;
    VoxelMaps voxel_maps_;
    std::map<SliceKey, CoilMatrix> compressions_;
    std::map<SliceKey, std::deque<Samples>> windows_;
    std::map<SliceKey, LastImage> last_images_;
    std::deque<std::size_t> trajectories_;  // hashes, the newest is the last
    std::size_t plans_made_ = 0, plans_updated_ = 0, maps_made_ = 0;
    std::vector<Complex> coil_images_, resized_;
    std::vector<Warning> warnings_;  // of the current image
};

}  // namespace recon_gadgets
