// Reconstructs images through recon's C API, and keeps what the next image can use: plans, by the trajectory they were
// made for, and coil maps, by the slice they belong to.
#pragma once

#include "settings.h"

#include <recon.h>

#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <tuple>

namespace recon_gadgets {

// What an image shows: acquisitions that agree in these go together, and have coil maps of their own.
using Place = std::tuple<std::size_t, unsigned, unsigned, unsigned, unsigned>;
Place place(const ISMRMRD::AcquisitionHeader &header);

// What came of an image.
struct Done {
    std::size_t iterations = 0;
    double residual = 0;
    std::string timing;           // milliseconds of each stage in words
    std::uint64_t memory = 0;     // bytes that were counted for it; 0 where the plan was kept
    std::vector<Notice> notices;  // what may be wrong with it
};

// One for each gadget and connection: nothing is shared, and plans, with their threads, are made where they are first
// used, which is after Gadgetron forked.
class Engine {
public:
    explicit Engine(Settings settings);

    const Settings &settings() const { return settings_; }

    // The voxels of an image, and its channels.
    Grid layout(const Spaces &spaces, unsigned ndim) const;
    std::size_t channels(std::size_t coils) const;

    // The samples of the sliding window that ends with these.
    Samples slide(Samples samples);
    // Takes the newest samples of a window out again, where no image came of them.
    void take_back(const Samples &samples);

    // `image`: [grid.image, channels], written. `reference`: calibration data of the same encoding, or null. `pending`:
    // bytes of images that have been promised, and not yet used.
    Done reconstruct(const Samples &samples, const Spaces &spaces, const Samples *reference, Complex *image,
                     std::uint64_t pending = 0);

    // A property with which no image can be made, and why: a GPU that is not there, a tolerance that is out of reach, more
    // threads than make sense.
    std::optional<std::pair<std::string, std::string>> bad_property() const;

    // Bytes that the first image of this kind takes, samples and outputs aside. `k` are those of `samples`.
    std::uint64_t needed(const Samples &samples, const Coordinates &k, const Spaces &spaces,
                         const Samples *reference) const;

    // How often something was made anew, for tests.
    std::size_t plans_made() const { return plans_made_; }
    std::size_t maps_made() const { return maps_made_; }

private:
    struct Destroy {
        void operator()(recon_plan *plan) const { recon_plan_destroy(plan); }
    };
    using Plan = std::unique_ptr<recon_plan, Destroy>;

    // Coil sensitivities of a place, [dims, coils].
    struct CoilMaps {
        std::size_t id = 0, coils = 0, images = 0;
        std::array<std::size_t, 3> dims{};
        std::vector<Complex> maps;
    };

    // A plan, and all that it was made from, to be compared.
    struct Kept {
        std::vector<float> trajectory;
        std::size_t components = 0, coils = 0, maps = 0;
        bool weighted = false;
        std::array<std::size_t, 3> dims{};
        Plan plan;
        std::uint64_t bytes = 0;
    };

    recon_options options(double tolerance) const;
    recon_geometry geometry(const Coordinates &k, const Grid &grid, std::size_t coils) const;
    void note(Cause cause, std::string text);
    Plan make(const Samples &samples, const recon_geometry &geometry, double tolerance);
    // A plan for the samples at `k`, with the weights asked for; null stands for those that the library computes.
    Plan weighted_plan(const Samples &samples, Coordinates &k, const Grid &grid, bool use_weights, bool explicitly,
                       const CoilMaps *maps, double tolerance);
    Kept &kept_plan(const Samples &samples, const Grid &grid, const CoilMaps *maps);
    const CoilMaps &coil_maps(const Samples &samples, const Grid &grid, std::size_t coils, const Place &place);
    void make_room();
    // Refuses an image for which there is no memory, once kept plans have gone.
    // Returns what it needs.
    std::uint64_t check_memory(const Samples &samples, const Spaces &spaces, const Samples *reference,
                               std::uint64_t pending);
    bool is_kept(const Kept &plan, const Samples &samples, const Grid &grid, std::size_t maps) const;
    // Of the library's message, what an acquisition's reader can use.
    [[noreturn]] void not_finite(const Samples &samples) const;
    bool uses_maps(std::size_t coils) const;

    Settings settings_;
    std::list<Kept> plans_;  // the one used last first
    std::map<Place, CoilMaps> maps_;
    std::map<Place, std::deque<Samples>> windows_;
    std::size_t plans_made_ = 0, maps_made_ = 0;
    std::vector<Complex> coil_images_, resized_;
    std::vector<Notice> notices_;  // of the image at work
};

}  // namespace recon_gadgets
