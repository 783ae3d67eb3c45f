"""A job's world as a USD stage, for Isaac Sim; stands alone beside `isaac_worker.py`.

Needs NumPy and ``pxr`` only. USD is written by schema names and attributes, as Omni Physics 107.3
(Isaac Sim 5.1) and 110 (6.0) document them ("Omni Physics Deformable Schema", "PhysX Schema
Addition"), so that it does not matter whether they come with generated classes; the same stage
opens where only `usd-core` is installed. Initial velocities are not in it: the worker sets them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Header = dict[str, Any]
F8 = NDArray[np.float64]
WORLD = "/world"
DYNAMIC, LED, STILL = "dynamic", "led", "still"
"""What a body is to a job; paths begin with it."""


# --- pure parts -----------------------------------------------------------------------------------


def rotation(quaternion_wxyz: Any) -> F8:
    """Rotation matrix (3, 3) of a unit quaternion."""
    w, x, y, z = quaternion_wxyz
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ])  # fmt: skip


def quaternion(matrix: F8) -> tuple[float, float, float, float]:
    """Unit quaternion ``wxyz`` of a rotation matrix (3, 3)."""
    trace = float(np.trace(matrix))
    off = (matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1])
    if trace > 0:
        s = 2 * math.sqrt(1 + trace)
        return (s / 4, off[0] / s, off[1] / s, off[2] / s)
    i = int(np.argmax(np.diag(matrix)))
    j, k = (i + 1) % 3, (i + 2) % 3
    s = 2 * math.sqrt(max(0.0, 1 + matrix[i, i] - matrix[j, j] - matrix[k, k]))
    out = [off[i] / s, 0.0, 0.0, 0.0]
    out[1 + i] = s / 4
    out[1 + j] = (matrix[j, i] + matrix[i, j]) / s
    out[1 + k] = (matrix[k, i] + matrix[i, k]) / s
    return (float(out[0]), float(out[1]), float(out[2]), float(out[3]))


def damping_of(share: float, dt: float) -> float:
    """PhysX's damping [1/s] that takes a share of velocity per second: v (1 - c dt) a step."""
    return 0.0 if share <= 0 else (1 - (1 - min(share, 1.0)) ** dt) / dt


def frame_of(
    pivot: Any, axis: Any, position: Any, quaternion_wxyz: Any
) -> tuple[F8, tuple[float, float, float, float]]:
    """Place and turn of a joint's frame in a body: its x axis is the hinge's."""
    turn = rotation(quaternion_wxyz)
    x = np.array(axis, float) / np.linalg.norm(axis)
    helper = np.eye(3)[int(np.argmin(np.abs(x)))]
    y = np.cross(helper, x) / np.linalg.norm(np.cross(helper, x))
    world = np.stack([x, y, np.cross(x, y)], axis=1)
    return turn.T @ (np.array(pivot) - np.array(position)), quaternion(turn.T @ world)


def principal(inertia: Any) -> tuple[F8, tuple[float, float, float, float]]:
    """Principal moments [kg m^2] and the turn of their axes in the body's frame."""
    matrix = np.array(inertia, float)
    if np.allclose(matrix, np.diag(np.diag(matrix)), rtol=0, atol=1e-9 * np.trace(matrix)):
        return np.diag(matrix), (1.0, 0.0, 0.0, 0.0)
    moments, axes = np.linalg.eigh(matrix)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    return moments, quaternion(axes)


def inertia_of(job: Header, index: int) -> F8:
    """Inertia (3, 3) of a body, with the rotors of the hinges that hold it."""
    body = job["bodies"][index]
    inertia = np.array(body["inertia"], float)
    for joint in job["joints"]:
        if joint["body"] == body["name"] and joint["armature"]:
            axis = rotation(body["quaternion_wxyz"]).T @ np.array(joint["axis"], float)
            axis /= np.linalg.norm(axis)
            inertia = inertia + joint["armature"] * np.outer(axis, axis)
    return inertia


def path_of(job: Header, index: int) -> str:
    """USD path of a body."""
    return f"{WORLD}/{job['bodies'][index]['motion']}_{index}"


# --- the stage ------------------------------------------------------------------------------------


class StageWriter:
    """Writes a job's world into a USD stage."""

    def __init__(self, stage: Any, job: Header, arrays: dict[str, NDArray[Any]]) -> None:
        from pxr import Gf, Sdf, UsdGeom, UsdPhysics, UsdShade, Vt

        self.gf, self.geom, self.physics, self.shade, self.vt = (
            Gf, UsdGeom, UsdPhysics, UsdShade, Vt
        )  # fmt: skip
        self.types = Sdf.ValueTypeNames
        self.sdf = Sdf
        self.stage, self.job, self.arrays = stage, job, arrays
        self.dt = float(Fraction(job["dt"]))

    def write(self) -> None:
        """All of it."""
        geom, stage = self.geom, self.stage
        geom.SetStageUpAxis(stage, geom.Tokens.z)
        geom.SetStageMetersPerUnit(stage, 1.0)
        self.physics.SetStageKilogramsPerUnit(stage, 1.0)
        stage.SetDefaultPrim(geom.Xform.Define(stage, WORLD).GetPrim())
        geom.Xform.Define(stage, f"{WORLD}/here")
        self._scene()
        for i in range(len(self.job["bodies"])):
            self._body(i)
        for k, joint in enumerate(self.job["joints"]):
            self._joint(k, joint)
        for k, item in enumerate(self.job["deformables"]):
            self._deformable(k, item)

    def _put(self, prim: Any, api: str, **values: tuple[str, Any]) -> None:
        """Apply a schema by name and set ``name=(type, value)``; "__" in a name is ":"."""
        if api:
            prim.AddAppliedSchema(api)
        for name, (kind, value) in values.items():
            text = name.replace("__", ":")
            prim.CreateAttribute(text, getattr(self.types, kind)).Set(value)

    def _scene(self) -> None:
        gravity = np.array(self.job["gravity"], float)
        size = float(np.linalg.norm(gravity))
        scene = self.physics.Scene.Define(self.stage, "/physics")
        down = gravity / size if size else np.array([0.0, 0.0, -1.0])
        scene.CreateGravityDirectionAttr(self.gf.Vec3f(*down.tolist()))
        scene.CreateGravityMagnitudeAttr(size)
        soft = bool(self.job["deformables"])
        solver = self.job["solver"]
        self._put(
            scene.GetPrim(), "PhysxSceneAPI",
            physxScene__solverType=("Token", solver["solver"]),
            physxScene__bounceThreshold=("Float", solver["restitution_threshold"]),
            physxScene__timeStepsPerSecond=("UInt", round(1 / self.dt)),
            # Deformables live on the GPU; rigid bodies are repeatable on the CPU.
            physxScene__enableGPUDynamics=("Bool", soft),
            physxScene__broadphaseType=("Token", "GPU" if soft else "MBP"),
            physxScene__enableEnhancedDeterminism=("Bool", not soft),
        )  # fmt: skip

    def _place(self, xform: Any, position: Any, quaternion_wxyz: Any) -> None:
        w, *xyz = (float(c) for c in quaternion_wxyz)
        xform.AddTranslateOp(self.geom.XformOp.PrecisionDouble).Set(
            self.gf.Vec3d(*(float(c) for c in position))
        )
        xform.AddOrientOp(self.geom.XformOp.PrecisionDouble).Set(
            self.gf.Quatd(w, self.gf.Vec3d(*xyz))
        )

    def _body(self, i: int) -> None:
        body = self.job["bodies"][i]
        path = path_of(self.job, i)
        xform = self.geom.Xform.Define(self.stage, path)
        self._place(xform, body["position"], body["quaternion_wxyz"])
        if body["shapes"]:
            material = self._surface(f"{path}/surface", body)
            for k, shape in enumerate(body["shapes"]):
                self._shape(f"{path}/shape_{k}", shape, material)
        prim = xform.GetPrim()
        if body["motion"] == STILL:
            return
        rigid = self.physics.RigidBodyAPI.Apply(prim)
        mass = self.physics.MassAPI.Apply(prim)
        if body["motion"] == LED:
            rigid.CreateKinematicEnabledAttr(True)
            mass.CreateMassAttr(body["mass"] or 1.0)
            return
        moments, turn = principal(inertia_of(self.job, i))
        mass.CreateMassAttr(body["mass"])
        mass.CreateCenterOfMassAttr(self.gf.Vec3f(0.0))
        mass.CreateDiagonalInertiaAttr(self.gf.Vec3f(*moments.tolist()))
        mass.CreatePrincipalAxesAttr(self.gf.Quatf(turn[0], self.gf.Vec3f(*turn[1:])))
        solver = self.job["solver"]
        values = {
            "linearDamping": ("Float", damping_of(body["linear_damping"], self.dt)),
            "angularDamping": ("Float", damping_of(body["angular_damping"], self.dt)),
            "maxAngularVelocity": ("Float", 1e6),
            "sleepThreshold": ("Float", 0.0),
            "stabilizationThreshold": ("Float", 0.0),
            "solverPositionIterationCount": ("Int", solver["iterations"]),
        }
        if "velocity_iterations" in solver:
            values["solverVelocityIterationCount"] = ("Int", int(solver["velocity_iterations"]))
        if "max_depenetration_velocity" in solver:
            values["maxDepenetrationVelocity"] = ("Float", solver["max_depenetration_velocity"])
        self._put(
            prim, "PhysxRigidBodyAPI", **{f"physxRigidBody__{n}": v for n, v in values.items()}
        )

    def _surface(self, path: str, body: Header) -> Any:
        """Physical material of a body: a pair's friction and restitution are products."""
        material = self.shade.Material.Define(self.stage, path)
        api = self.physics.MaterialAPI.Apply(material.GetPrim())
        api.CreateStaticFrictionAttr(body["friction"])
        api.CreateDynamicFrictionAttr(body["friction"])
        api.CreateRestitutionAttr(body["restitution"])
        self._put(
            material.GetPrim(), "PhysxMaterialAPI",
            physxMaterial__frictionCombineMode=("Token", "multiply"),
            physxMaterial__restitutionCombineMode=("Token", "multiply"),
        )  # fmt: skip
        return material

    def _bind(self, prim: Any, material: Any) -> None:
        self.shade.MaterialBindingAPI.Apply(prim).Bind(
            material, self.shade.Tokens.weakerThanDescendants, "physics"
        )

    def _shape(self, path: str, shape: Header, material: Any) -> None:
        geom, kind = self.geom, shape["kind"]
        if kind == "sphere":
            made = geom.Sphere.Define(self.stage, path)
            made.CreateRadiusAttr(shape["radius"])
        elif kind == "box":
            made = geom.Cube.Define(self.stage, path)
            made.CreateSizeAttr(2.0)
        elif kind == "mesh":
            made = self._mesh(
                path, self.arrays[f"{shape['mesh']}/vertices"],
                self.arrays[f"{shape['mesh']}/triangles"],
            )  # fmt: skip
            api = self.physics.MeshCollisionAPI.Apply(made.GetPrim())
            api.CreateApproximationAttr("convexHull" if shape["convex"] else "none")
        else:
            table = {"cylinder": geom.Cylinder, "capsule": geom.Capsule}
            made = table[kind].Define(self.stage, path)
            made.CreateAxisAttr("Z")
            made.CreateRadiusAttr(shape["radius"])
            # A capsule's height is without its two half balls in USD.
            ends = 2 * shape["radius"] if kind == "capsule" else 0.0
            made.CreateHeightAttr(shape["height"] - ends)
        self._place(made, shape["position"], shape["quaternion_wxyz"])
        if kind == "box":
            made.AddScaleOp().Set(self.gf.Vec3f(*shape["half_extents"]))
        self.physics.CollisionAPI.Apply(made.GetPrim())
        self._offsets(made.GetPrim())
        self._bind(made.GetPrim(), material)

    def _offsets(self, prim: Any) -> None:
        solver = self.job["solver"]
        named = {"contact_offset": "contactOffset", "rest_offset": "restOffset"}
        given = {v: solver[k] for k, v in named.items() if k in solver}
        if given:
            values = {f"physxCollision__{n}": ("Float", v) for n, v in given.items()}
            self._put(prim, "PhysxCollisionAPI", **values)

    def _mesh(self, path: str, vertices: F8, triangles: NDArray[Any]) -> Any:
        made = self.geom.Mesh.Define(self.stage, path)
        made.CreatePointsAttr(self._points(vertices))
        made.CreateFaceVertexCountsAttr(self.vt.IntArray([3] * len(triangles)))
        made.CreateFaceVertexIndicesAttr(self.vt.IntArray(triangles.ravel().tolist()))
        made.CreateSubdivisionSchemeAttr("none")
        return made

    def _points(self, vertices: F8) -> Any:
        return self.vt.Vec3fArray([self.gf.Vec3f(*v) for v in vertices.tolist()])

    def _joint(self, k: int, joint: Header) -> None:
        kinds = {
            "hinge": self.physics.RevoluteJoint, "ball": self.physics.SphericalJoint,
            "fixed": self.physics.FixedJoint,
        }  # fmt: skip
        made = kinds[joint["kind"]].Define(self.stage, f"{WORLD}/joint_{k}")
        names = [b["name"] for b in self.job["bodies"]]
        sides = (("0", joint["other"]), ("1", joint["body"]))
        for side, name in sides:
            pose = ([0.0] * 3, [1.0, 0.0, 0.0, 0.0])
            if name:
                i = names.index(name)
                getattr(made, f"CreateBody{side}Rel")().SetTargets([path_of(self.job, i)])
                body = self.job["bodies"][i]
                pose = body["position"], body["quaternion_wxyz"]
            at, turn = frame_of(joint["pivot"], joint["axis"], *pose)
            getattr(made, f"CreateLocalPos{side}Attr")(self.gf.Vec3f(*at.tolist()))
            turned = self.gf.Quatf(turn[0], self.gf.Vec3f(*turn[1:]))
            getattr(made, f"CreateLocalRot{side}Attr")(turned)
        made.CreateCollisionEnabledAttr(bool(joint["collide"]))
        if joint["kind"] != "fixed":
            made.CreateAxisAttr("X")
        if joint["kind"] == "hinge" and joint["damping"]:
            drive = self.physics.DriveAPI.Apply(made.GetPrim(), "angular")
            drive.CreateTypeAttr("force")
            drive.CreateStiffnessAttr(0.0)
            # USD's angular drives are per degree.
            drive.CreateDampingAttr(math.radians(joint["damping"]))

    # --- what bends -------------------------------------------------------------------------------

    def _deformable(self, k: int, item: Header) -> None:
        rest = f"rest/{item['name']}"
        vertices = self.arrays[f"{rest}/vertices"]
        path = f"{WORLD}/soft_{k}"
        points = self._points(vertices)
        if item["kind"] == "cloth":
            triangles = self.arrays[f"{rest}/triangles"]
            prim = self._mesh(path, vertices, triangles).GetPrim()
            body, sim = "PhysxSurfaceDeformableBodyAPI", "OmniPhysicsSurfaceDeformableSimAPI"
            names = "omniphysics__restTriVtxIndices", ("Int3Array", self._ints(triangles, "Vec3i"))
        else:
            tetrahedra = self.arrays[f"{rest}/tetrahedra"]
            solid = self.geom.TetMesh.Define(self.stage, path)
            solid.CreatePointsAttr(points)
            elements = self._ints(tetrahedra, "Vec4i")
            solid.CreateTetVertexIndicesAttr(elements)
            faces = self.arrays[f"{rest}/triangles"]
            solid.CreateSurfaceFaceVertexIndicesAttr(self._ints(faces, "Vec3i"))
            prim = solid.GetPrim()
            body, sim = "PhysxBaseDeformableBodyAPI", "OmniPhysicsVolumeDeformableSimAPI"
            names = "omniphysics__restTetVtxIndices", ("Int4Array", elements)
        self._put(prim, "OmniPhysicsDeformableBodyAPI")
        self._put(
            prim, sim, omniphysics__restShapePoints=("Point3fArray", points), **{names[0]: names[1]}
        )
        self.physics.CollisionAPI.Apply(prim)
        self._offsets(prim)
        solver = self.job["solver"]
        values = {
            "solverPositionIterationCount": ("UInt", solver["iterations"]),
            "selfCollision": ("Bool", bool(item["self_contact"])),
        }
        for name, own in (("settling_damping", "settlingDamping"),
                          ("settling_threshold", "settlingThreshold"),
                          ("sleep_threshold", "sleepThreshold")):  # fmt: skip
            if name in solver:
                values[own] = ("Float", solver[name])
        self._put(prim, body, **{f"physxDeformableBody__{n}": v for n, v in values.items()})
        self._bind(prim, self._stuff(f"{path}_stuff", item))
        for n, target in enumerate(item["pins"]):
            self._pin(f"{path}_pin_{n}", path, f"{rest}/pin/{n}", target)

    def _ints(self, rows: NDArray[Any], kind: str) -> Any:
        make = getattr(self.gf, kind)
        return getattr(self.vt, f"{kind}Array")([make(*r) for r in rows.tolist()])

    def _stuff(self, path: str, item: Header) -> Any:
        """What a deformable is made of."""
        material = self.shade.Material.Define(self.stage, path)
        prim, solver = material.GetPrim(), self.job["solver"]
        self._put(
            prim, "OmniPhysicsBaseMaterialAPI",
            omniphysics__density=("Float", item["density"]),
            omniphysics__dynamicFriction=("Float", item["friction"]),
            omniphysics__staticFriction=("Float", item["friction"]),
        )  # fmt: skip
        self._put(
            prim, "OmniPhysicsDeformableMaterialAPI",
            omniphysics__youngsModulus=("Float", item["young"]),
            omniphysics__poissonsRatio=("Float", item["poisson"]),
        )  # fmt: skip
        cloth = item["kind"] == "cloth"
        if cloth:
            # Stretch and shear stiffness have attributes that are not read: E, nu and t are.
            self._put(
                prim, "OmniPhysicsSurfaceDeformableMaterialAPI",
                omniphysics__surfaceThickness=("Float", item["thickness"]),
                omniphysics__surfaceBendStiffness=("Float", item["bend"]),
            )  # fmt: skip
        own = {"elasticity_damping": "elasticityDamping"}
        if cloth:
            own["bend_damping"] = "bendDamping"
        given = {
            f"physxDeformableMaterial__{v}": ("Float", solver[k])
            for k, v in own.items() if k in solver
        }  # fmt: skip
        if given:
            kind = "PhysxSurfaceDeformableMaterialAPI" if cloth else "PhysxDeformableMaterialAPI"
            self._put(prim, kind, **given)
        return material

    def _pin(self, path: str, soft: str, arrays: str, target: int) -> None:
        """Vertices held at places in the frame of a body, or of the world."""
        prim = self.stage.DefinePrim(path, "OmniPhysicsVtxXformAttachment")
        there = f"{WORLD}/here" if target < 0 else path_of(self.job, target)
        for name, where in (("src0", soft), ("src1", there)):
            relation = prim.CreateRelationship(f"omniphysics:{name}")
            relation.SetTargets([self.sdf.Path(where)])
        vertices = self.vt.IntArray(self.arrays[f"{arrays}/vertices"].tolist())
        places = self._points(self.arrays[f"{arrays}/places"])
        self._put(
            prim, "", omniphysics__attachmentEnabled=("Bool", True),
            omniphysics__vtxIndicesSrc0=("IntArray", vertices),
            omniphysics__localPositionsSrc1=("Point3fArray", places),
        )  # fmt: skip
