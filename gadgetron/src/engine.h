// Reconstructs images with recon's C API, and reuses plans and coil maps for later images. Plans are found by their
// trajectory, coil maps by their slice. A plan whose trajectory did not recur is given the next new trajectory.
#pragma once

#include "blade_motion.h"
#include "settings.h"

#include <deque>
#include <list>

namespace recon_gadgets {

// Facts about a reconstruction, for the log and for the attributes of the image.
struct ReconstructionResult {
    std::size_t iterations = 0;  // of conjugate gradients; 0 for other methods
    double residual = 0;         // relative residual of conjugate gradients
    BladeReport blades;          // empty except for PROPELLER
    std::string timing;          // "plan 1.2 ms, ..."
    std::uint64_t memory = 0;    // estimated bytes; 0 if a cached plan was used
    std::vector<std::string> warnings;
};

// The reconstruction of one gadget on one connection. Plans are made on first use, because they have threads and
// Gadgetron forks for each connection.
class Engine {
public:
    explicit Engine(Settings settings);

    const Settings &settings() const { return settings_; }

    // Reads the maps of off-resonance and decay that are files. Throws an Error if a file cannot be read.
    void read_voxel_maps();
    // Adds a map from the chain, for later images of its slice.
    void add_voxel_map(MapKind kind, unsigned slice, const std::array<std::size_t, 3> &dims, std::vector<float> values);
    // Stores why an image of the chain cannot be a map, for the error of its slice.
    void refuse_voxel_map(MapKind kind, unsigned slice, std::string reason) {
        voxel_maps_.refuse(kind, slice, std::move(reason));
    }
    // Returns whether images of the chain may be maps of this kind.
    bool accepts_voxel_maps(MapKind kind) const { return source(kind).images; }

    // Returns the number of channels of an image.
    std::size_t channel_count(std::size_t coils) const;

    // Writes an image to `image`, [grid.image, channels]. Coil maps are estimated from `reference`, the calibration
    // data, or from `samples` if it is null. `pending`: bytes of images that are allocated, but not yet written.
    ReconstructionResult reconstruct(const Samples &samples, const Samples *reference, Complex *image,
                                     std::uint64_t pending = 0);

    // Returns the name of a property that makes all images impossible, and the error: a missing GPU, an unreachable
    // tolerance, or too many threads. Returns nothing if all properties are valid.
    std::optional<std::pair<std::string, std::string>> find_invalid_property() const;

    // Returns the host bytes of the first image with these samples, at the peak, without samples and outputs.
    std::uint64_t estimate_memory(const Samples &samples, const Samples *reference) const;

    // Counters for tests.
    std::size_t plans_made() const { return plans_made_; }
    std::size_t plans_updated() const { return plans_updated_; }
    std::size_t maps_made() const { return maps_made_; }

private:
    class MemoryEstimator;

    struct PlanDeleter {
        void operator()(recon_plan *plan) const { recon_plan_destroy(plan); }
    };
    using Plan = std::unique_ptr<recon_plan, PlanDeleter>;

    // Coil sensitivity maps, [dims, coils]. Cached plans refer to their maps by id.
    struct CoilMaps {
        std::size_t id = 0, coils = 0, images = 0;
        std::array<std::size_t, 3> dims{};
        std::vector<Complex> maps;
    };

    // The matrix from coils to virtual coils.
    struct CoilMatrix {
        std::size_t coils = 0;
        std::uint64_t virtual_coils = 0;
        std::vector<std::complex<double>> entries;
    };

    // Ids of the maps of off-resonance and of decay; 0 without a map.
    using VoxelMapIds = std::pair<std::size_t, std::size_t>;

    // Maps of off-resonance and decay for an image; null if the image has none.
    struct OffResonanceMaps {
        const VoxelMap *field = nullptr, *decay = nullptr;
        std::vector<float> times;  // seconds, one per sample; empty without maps

        VoxelMapIds ids() const { return {field == nullptr ? 0 : field->id, decay == nullptr ? 0 : decay->id}; }
        // Sets the maps and times of a geometry.
        void add_to(recon_geometry &geometry) const {
            geometry.field_map = field == nullptr ? nullptr : field->values.data();
            geometry.decay_map = decay == nullptr ? nullptr : decay->values.data();
            geometry.times = times.empty() ? nullptr : times.data();
        }
    };

    // One image to reconstruct. `samples` and `reference` have the coils that are reconstructed.
    struct ImageTask {
        const Samples &samples;
        const Samples *reference;  // calibration data, or null
        Grid grid;
        OffResonanceMaps field;
        const CoilMaps *maps = nullptr;  // null if coils are not combined by maps

        std::size_t map_id() const { return maps == nullptr ? 0 : maps->id; }
        // Returns the number of images that the method computes.
        std::size_t image_count() const { return maps != nullptr ? 1 : samples.coils(); }
    };

    // A plan with the input that it was made from.
    struct CachedPlan {
        std::vector<float> trajectory;        // from Samples::trajectory
        std::size_t coils = 0, maps = 0;      // `maps`: id of the coil maps, or 0
        bool weighted = false;
        VoxelMapIds voxel_maps;
        std::vector<float> times;  // empty without maps of off-resonance or decay
        std::array<std::size_t, 3> dims{};
        bool recurs = false;  // whether the trajectory came more than once
        Plan plan;
        std::uint64_t bytes = 0;
    };

    // The source of a plan's density weights.
    enum class WeightSource { None, Trajectory, Computed };

    // An image on the matrix of encodedSpace, the initial image for the next iterations of its slice.
    struct LastImage {
        std::size_t images = 0;
        std::array<std::size_t, 3> dims{};
        std::vector<Complex> values;
    };

    // engine.cpp:

    const MapSource &source(MapKind kind) const {
        return kind == MapKind::Field ? settings_.field_map : settings_.decay_map;
    }
    // Throws an Error if a requested map is missing for the slice, or does not fit.
    void check_voxel_map(MapKind kind, const Samples &samples, const Grid &grid);
    OffResonanceMaps off_resonance(const Samples &samples) const;
    // Adds a warning, unless one of the same cause exists: the plans for weights and for coil maps give the same ones.
    void add_warning(std::string text);
    // Adds the warnings of the library's last call. `prefix` begins each text.
    void add_warnings_of_call(const std::string &prefix = "");
    ReconstructionResult reconstruct_coils(ImageTask task, Complex *image, std::uint64_t pending);
    // Writes the result of the method to `computed`, [grid.dims, image_count()]. `plan` is null for PROPELLER.
    void compute_images(const ImageTask &task, CachedPlan *plan, Complex *computed, ReconstructionResult &result);
    void solve(const ImageTask &task, CachedPlan &plan, Complex *computed, ReconstructionResult &result);
    // Writes the gridding of blades without their motion to `computed`, and returns the motion.
    BladeReport correct_blades(const ImageTask &task, Complex *computed);
    recon_propeller_options propeller_options() const;
    // Writes images of data of which a side of k-space is missing to `computed`.
    void fill_missing_side(const ImageTask &task, Complex *computed);
    // Returns whether the method uses a cached plan. Corrected blades have a different trajectory in each image, for
    // which the library makes its own plan, as for partial Fourier.
    bool uses_plan() const { return settings_.method != Method::Propeller && !settings_.partial_fourier; }
    // Returns the capacity for six numbers per blade, as a blade has at least two lines of two samples.
    static std::size_t motion_capacity(const Samples &samples) { return 6 * (samples.count() / 4); }

    // engine_plans.cpp:

    recon_options options(double tolerance) const;
    // Adds the warnings of a plan to those of the image.
    void add_plan_warnings(const recon_plan *plan, bool for_maps);
    // Returns the source of the weights of a plan. `required`: also weights that the library computes by default.
    WeightSource weight_source(const Samples &samples, bool use_weights, bool required) const;
    WeightSource weight_source(const Samples &samples) const;
    // Computes density weights for a plan that has none, and gives them to it.
    void compute_weights(recon_plan *plan, std::size_t samples) const;
    Plan make_plan(recon_geometry geometry, WeightSource weights, double tolerance, bool for_maps = false);
    // Returns the cached plan of the task's input: an equal one, an updated one, or a new one.
    CachedPlan &find_or_make_plan(const ImageTask &task);
    // Returns a cached plan that may be given the trajectory, as its own did not recur; or the end.
    std::list<CachedPlan>::iterator find_free_plan(const ImageTask &task);
    CachedPlan new_plan(const ImageTask &task);
    void update_plan(CachedPlan &cached, const ImageTask &task);
    // Returns whether a trajectory is among the last ones for which plans were made or updated, and stores it.
    bool seen_recently(const ImageTask &task);
    // Removes the least recently used plans that exceed the properties plans and memory.
    void evict_plans();
    // Returns whether a plan can be given the task's trajectory.
    bool is_compatible(const CachedPlan &plan, const ImageTask &task) const;
    // Returns whether a plan was made from the same input, bit for bit.
    bool matches(const CachedPlan &plan, const ImageTask &task) const;

    // engine_coils.cpp:

    bool uses_maps(std::size_t coils) const;
    double coil_map_tolerance() const;
    // Returns the coil maps of the task's slice, estimated on first use and after `maps_every` images.
    const CoilMaps &coil_maps(const ImageTask &task);
    CoilMaps estimate_coil_maps(const Samples &samples, const Grid &grid);
    // Returns the matrix of a slice, from the data of its first image, so that its images are comparable and share
    // maps.
    const CoilMatrix &compression(const Samples &samples);
    Samples compressed(const Samples &samples, const CoilMatrix &matrix) const;

    // engine_images.cpp:

    bool combines_coils(std::size_t images) const;
    bool combines_adaptively() const;
    // Returns the image from which iterations start, or null if none of this shape exists.
    const Complex *initial_image(const ImageTask &task);
    void store_last_image(const ImageTask &task, const Complex *computed);
    // Resizes computed images to reconSpace, combines coils, and takes magnitudes, as far as required. Returns whether
    // any of these was required. `image` may be the same array as `computed` if only magnitudes are required.
    bool finish_image(const ImageTask &task, const Complex *computed, Complex *image);
    void resize(const ImageTask &task, const Complex *computed, Complex *resized) const;
    void combine(const ImageTask &task, const Complex *images, Complex *image) const;

    // engine_memory.cpp:

    // Returns the bytes that an image needs. Evicts plans if memory is short, and throws an Error if that is not
    // enough.
    std::uint64_t check_memory(const ImageTask &task, std::uint64_t pending);

    Settings settings_;
    std::list<CachedPlan> plans_;  // the most recently used plan is the first
    std::map<SliceKey, CoilMaps> maps_;
    VoxelMaps voxel_maps_;
    std::map<SliceKey, CoilMatrix> compressions_;
    std::map<SliceKey, LastImage> last_images_;
    std::deque<std::size_t> trajectories_;  // hashes; the newest is the last
    std::size_t plans_made_ = 0, plans_updated_ = 0, maps_made_ = 0;
    std::vector<Complex> computed_images_, resized_;
    std::vector<std::string> warnings_;  // of the current image
};

}  // namespace recon_gadgets
